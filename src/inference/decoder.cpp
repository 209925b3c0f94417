// SPDX-License-Identifier: Apache-2.0
#include "trireme/inference/decoder.hpp"

#include "trireme/base/error.hpp"
#include "trireme/engine/registrations.hpp"
#include "trireme/engine/state_parts.hpp"
#include "trireme/model/stage_parameters.hpp"

#include <algorithm>
#include <array>

namespace trireme::inference {

using comm::AxisGroups;
using device::Purpose;
using device::Tensor;
using engine::Memory;
using engine::ParameterPart;
using layout::Axis;

namespace {

/// Tags tell the parts of the model that receive apart.
int hidden_tag(int receiving_chunk) {
  return receiving_chunk;
}

model::StagePlace place_of(const DecoderOptions& options) {
  const auto ranges = base::value_or_throw(layout::assign_layers(
      options.model.num_hidden_layers, options.placement(), options.stage_layers));
  const int stage = options.mesh.coordinate(Axis::pipeline, options.rank);
  return {options.mesh, options.rank, ranges[static_cast<std::size_t>(stage)],
          model::SequenceParallel::off, options.placement_kind};
}

/// Tokens that each tensor-parallel rank has logits of.
std::vector<layout::Box> vocabulary_parts(const DecoderOptions& options) {
  const char* name = options.model.tie_word_embeddings ? "embedding.weight" : "head.weight";
  std::vector<layout::Box> parts;
  for (const auto& parameter : model::parameters(options.model)) {
    if (parameter.tensor.name != name) continue;
    for (const auto rank : options.mesh.group(Axis::tensor, options.rank)) {
      parts.push_back(layout::shard_box(parameter.tensor, options.mesh, rank));
    }
  }
  return parts;
}

/// The step that needs the most: every slot up to its last position, and the rows with as few of
/// the slots as can hold them.
std::vector<layers::SequencePart> largest_step(const DecoderOptions& options) {
  std::vector<layers::SequencePart> parts;
  std::int64_t first_row = 0;
  for (int slot = 0; slot < options.capacity.slots; ++slot) {
    const std::int64_t others = options.capacity.slots - slot - 1;
    const auto count =
        std::min(options.capacity.positions, options.rows_at_once - first_row - others);
    parts.push_back({slot, options.capacity.positions - count, first_row, count});
    first_row += count;
  }
  return parts;
}

}  // namespace

struct Decoder::Parts {
  DecoderOptions options;
  AxisGroups groups;
  device::Kernels& kernels;
  Memory& memory;
  /// Null where the decoder has parameters of its own.
  const engine::Engine* engine;
  std::optional<model::StageParameters> own_parameters;
  const model::StageParameters& parameters;
  layers::StageContext context;
  std::vector<layout::Box> vocabulary;
  Tensor flat_parameters;
  Tensor tokens;  // i32 [rows_at_once]
  Tensor hidden;  // [rows_at_once, hidden]
  // Tensors of the last stage only.
  Tensor ends;        // [slots, hidden]: the last row of each part
  Tensor logits;      // f32 [slots * vocabulary]
  Tensor own_logits;  // f32 [slots * widest part], tensor parallel
  Tensor all_logits;  // f32 [tp * slots * widest part], tensor parallel
  /// Logits of a step in host memory.
  std::vector<float> host_logits;
  /// [chunk], over the members above; constructed last.
  std::vector<std::unique_ptr<layers::DecoderStage>> chunks;
  /// Memory that collectives and messages work in; ends before memory and groups do.
  engine::Registrations registrations;

  Parts(const DecoderOptions& given, const engine::Engine* their_engine,
        const AxisGroups& their_groups, device::Kernels& their_kernels, Memory& their_memory);
  int stage() const { return groups.on(Axis::pipeline).rank(); }
  bool is_last_stage() const { return stage() == options.placement().last_stage(); }
  /// The part of the model that ends with the head.
  layers::DecoderStage& last_chunk() { return *chunks.back(); }
  void make_buffers();
  void make_chunks();
  /// Logits on the last stage, nothing on the others.
  Tensor run_pass(std::span<const layers::SequencePart> sequences, const Tensor& local_tokens,
                  const Tensor& rows);
  std::int64_t widest() const;
  Tensor whole_logits(std::int64_t count);
  Tensor on_host(const Tensor& values);
};

Decoder::Parts::Parts(const DecoderOptions& given, const engine::Engine* their_engine,
                      const AxisGroups& their_groups, device::Kernels& their_kernels,
                      Memory& their_memory)
    : options(given),
      groups(their_groups),
      kernels(their_kernels),
      memory(their_memory),
      engine(their_engine),
      parameters(engine != nullptr ? engine->parameters()
                                   : own_parameters.emplace(options.model, place_of(options), 1)),
      context{options.model, kernels, groups.on(Axis::tensor), memory.of(Purpose::workspace),
              options.dtype},
      vocabulary(vocabulary_parts(options)) {
  TRIREME_EXPECT(options.rows_at_once >= options.capacity.slots &&
                     options.rows_at_once <= options.capacity.slots * options.capacity.positions,
                 "a step has a row of every slot, and places for all its rows");
  if (own_parameters) {
    flat_parameters =
        memory.of(Purpose::parameters).allocate(options.dtype, {own_parameters->flat().size});
    own_parameters->bind(flat_parameters, {});
  }
  if (engine != nullptr) context.weights = &engine->weights();
  make_buffers();
  make_chunks();
  // An engine has registered its arenas as a whole.
  if (engine == nullptr) engine::register_arenas(options.model, groups, memory, registrations);
}

void Decoder::Parts::make_chunks() {
  const auto ranges = place_of(options).chunks;
  const auto placement = options.placement();
  for (int chunk = 0; chunk < options.virtual_stages; ++chunk) {
    const layout::ChunkPlace place{stage(), chunk};
    chunks.push_back(std::make_unique<layers::DecoderStage>(
        context, parameters,
        layers::Chunk::Role{ranges[static_cast<std::size_t>(chunk)], placement.is_first(place),
                            placement.is_last(place)},
        options.capacity, memory.of(Purpose::activations), memory.of(Purpose::parameters)));
  }
}

void Decoder::Parts::make_buffers() {
  const auto width = options.model.hidden_size;
  tokens = memory.of(Purpose::batch).allocate(device::DType::i32, {options.rows_at_once});
  hidden = memory.of(Purpose::communication).allocate(options.dtype, {options.rows_at_once, width});
  if (!is_last_stage()) return;
  auto& arena = memory.of(Purpose::activations);
  const std::int64_t slots = options.capacity.slots;
  ends = arena.allocate(options.dtype, {slots, width});
  logits = arena.allocate(device::DType::f32, {slots * options.model.vocab_size});
  if (groups.on(Axis::tensor).size() == 1) return;
  own_logits = memory.of(Purpose::communication).allocate(device::DType::f32, {slots * widest()});
  all_logits =
      memory.of(Purpose::communication)
          .allocate(device::DType::f32, {groups.on(Axis::tensor).size() * slots * widest()});
}

std::int64_t Decoder::Parts::widest() const {
  std::int64_t widest = 0;
  for (const auto& box : vocabulary) widest = std::max(widest, box.length[0]);
  return widest;
}

/// Logits of the whole vocabulary from the parts of the ranks, which may differ in size.
Tensor Decoder::Parts::whole_logits(std::int64_t count) {
  const auto rows = ends.slice(0, 0, count);
  const auto vocabulary_size = options.model.vocab_size;
  const auto whole =
      logits.slice(0, 0, count * vocabulary_size).reshape({1, count, vocabulary_size});
  if (groups.on(Axis::tensor).size() == 1) {
    last_chunk().logits(rows, whole.reshape({count, vocabulary_size}));
    return whole;
  }
  const auto width = widest();
  const std::int64_t ranks = groups.on(Axis::tensor).size();
  const auto own = own_logits.slice(0, 0, count * width);
  const auto all = all_logits.slice(0, 0, ranks * count * width);
  last_chunk().logits(rows,
                      own.reshape({count, width}).slice(1, 0, last_chunk().local_vocabulary()));
  groups.on(Axis::tensor).start_all_gather(own, all, {}).wait_on_stream();
  for (std::int64_t part = 0; part < ranks; ++part) {
    const auto& box = vocabulary[static_cast<std::size_t>(part)];
    if (box.length[0] == 0) continue;
    kernels.issue(device::Copy{
        all.reshape({ranks, count, width}).slice(0, part, 1).slice(2, 0, box.length[0]),
        whole.slice(2, box.offset[0], box.length[0])});
  }
  return whole;
}

Tensor Decoder::Parts::on_host(const Tensor& values) {
  auto& device = kernels.device();
  if (device.is_host()) return values;
  host_logits.resize(static_cast<std::size_t>(values.element_count()));
  // Kernels must be done before: a copy to memory that is not pinned may block unwatched.
  device.synchronize();
  device.copy_out(values, host_logits.data());
  device.synchronize();
  return values.moved_to(host_logits.data());
}

Tensor Decoder::Parts::run_pass(std::span<const layers::SequencePart> sequences,
                                const Tensor& local_tokens, const Tensor& rows) {
  auto& pipeline = groups.on(Axis::pipeline);
  const auto placement = options.placement();
  for (int chunk = 0; chunk < options.virtual_stages; ++chunk) {
    const layout::ChunkPlace place{stage(), chunk};
    const auto before = placement.previous(place);
    const auto after = placement.next(place);
    // A stage hands over to itself in place.
    const auto is_away = [&](layout::ChunkPlace other) {
      return other != layout::no_place && other.stage != place.stage;
    };
    if (is_away(before)) {
      pipeline.start_receive(rows, before.stage, hidden_tag(chunk)).wait_on_stream();
    }
    chunks[static_cast<std::size_t>(chunk)]->run(sequences, local_tokens, rows);
    if (is_away(after)) {
      pipeline.start_send(rows, after.stage, hidden_tag(after.virtual_stage)).wait_on_stream();
    }
  }
  if (!is_last_stage()) return {};
  std::int64_t index = 0;
  for (const auto& sequence : sequences) {
    kernels.issue(device::Copy{rows.slice(0, sequence.first_row + sequence.count - 1, 1),
                               ends.slice(0, index++, 1)});
  }
  return whole_logits(index);
}

Decoder::Decoder(const DecoderOptions& options, const AxisGroups& groups, device::Kernels& kernels,
                 Memory& memory)
    : parts_(new Parts(options, nullptr, groups, kernels, memory)) {}

Decoder::Decoder(const DecoderOptions& options, const engine::Engine& engine,
                 const AxisGroups& groups, device::Kernels& kernels, Memory& memory)
    : parts_(new Parts(options, &engine, groups, kernels, memory)) {}

Decoder::~Decoder() {
  device::leave(parts_->kernels.device());
}

std::vector<ParameterPart> Decoder::parameter_parts() {
  TRIREME_EXPECT(parts_->own_parameters.has_value(),
                 "an engine's parameters are the engine's to fill");
  return engine::parameter_parts(parts_->parameters, parts_->flat_parameters, {});
}

bool Decoder::is_last_stage() const {
  return parts_->is_last_stage();
}

Tensor Decoder::run(std::span<const layers::SequencePart> sequences,
                    std::span<const std::int32_t> tokens) {
  auto& parts = *parts_;
  const auto rows = static_cast<std::int64_t>(tokens.size());
  const auto hidden = parts.hidden.slice(0, 0, rows);
  const auto local_tokens = parts.tokens.slice(0, 0, rows);
  if (!parts.memory.of(Purpose::batch).is_measuring()) {
    parts.kernels.device().copy_in(tokens.data(), local_tokens);
    parts.kernels.device().synchronize();
  }
  Tensor logits;
  const auto pass = [&] { logits = parts.run_pass(sequences, local_tokens, hidden); };
  if (parts.engine != nullptr) {
    parts.engine->read_parameters(pass);
  } else {
    pass();
  }
  if (!parts.is_last_stage()) return {};
  if (parts.memory.of(Purpose::activations).is_measuring()) return logits;
  return parts.on_host(logits);
}

void Decoder::run_largest() {
  const auto& options = parts_->options;
  run(largest_step(options),
      std::vector<std::int32_t>(static_cast<std::size_t>(options.rows_at_once)));
}

void Decoder::run_nobodys() {
  run(std::array{layers::SequencePart{.count = 1}}, std::array{std::int32_t{0}});
}

void Decoder::share(std::span<std::int32_t> chosen) {
  auto& pipeline = parts_->groups.on(Axis::pipeline);
  if (pipeline.size() == 1) return;
  const auto count = static_cast<std::int64_t>(chosen.size());
  pipeline.host_group().broadcast(device::Tensor(chosen.data(), device::DType::i32, {count}),
                                  parts_->options.placement().last_stage());
}

}  // namespace trireme::inference
