#include "trireme/train/generate.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/data/tokenizer.hpp"
#include "trireme/engine/options.hpp"
#include "trireme/runtime/agree.hpp"
#include "trireme/train/weights.hpp"

#include "groups.hpp"
#include "replica_decoding.hpp"

#include <algorithm>
#include <chrono>

namespace trireme::train {

using data::Tokenizer;
using layout::Axis;
namespace fs = std::filesystem;

namespace {

/// Rows of a step while prompts are read: enough for products to be efficient.
constexpr std::int64_t prompt_rows_at_once = 512;

base::Result<Tokenizer> open_tokenizer(const GenerateRequest& request,
                                       const config::Config& config) {
  auto path = request.tokenizer;
  if (path.empty()) path = config.text("data.tokenizer");
  if (path.empty()) path = tokenizer_of_weights(request.weights);
  if (path.empty()) {
    return base::usage_failure(base::format(
        "no tokenizer belongs to '{}' (prompts are text, models read tokens); name one with "
        "--tokenizer FILE",
        request.weights.string()));
  }
  return Tokenizer::load(path);
}

base::Result<std::vector<DecodedSequence>> read_prompts(const GenerateRequest& request,
                                                        const Tokenizer& tokenizer,
                                                        const model::ModelConfig& model) {
  std::vector<DecodedSequence> sequences;
  for (const auto& prompt : request.prompts) {
    DecodedSequence sequence;
    sequence.index = static_cast<std::int64_t>(sequences.size());
    sequence.ids = tokenizer.encode(prompt, data::Template::apply);
    // What stands before any text: the end of another.
    if (sequence.ids.empty()) {
      if (const auto end = tokenizer.end_of_text()) sequence.ids.push_back(*end);
    }
    if (sequence.ids.empty()) {
      return base::usage_failure(base::format(
          "prompt {} is empty and the tokenizer has no token that begins a text; give some text",
          sequence.index));
    }
    const auto largest = *std::max_element(sequence.ids.begin(), sequence.ids.end());
    if (largest >= model.vocab_size) {
      return base::usage_failure(base::format(
          "the tokenizer made token {} of prompt {} but model.vocab_size is {} (they do not belong "
          "together); name the model's own with --tokenizer FILE",
          largest, sequence.index, model.vocab_size));
    }
    sequence.prompt_size = sequence.ids.size();
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

/// Every data-parallel replica takes every n-th prompt.
std::vector<DecodedSequence> share_of(const std::vector<DecodedSequence>& all,
                                      const comm::ProcessGroup& data) {
  std::vector<DecodedSequence> mine;
  for (auto index = static_cast<std::size_t>(data.rank()); index < all.size();
       index += static_cast<std::size_t>(data.size())) {
    mine.push_back(all[index]);
  }
  return mine;
}

engine::DecoderOptions decoder_options(const GenerateRequest& request, const config::Config& config,
                                       const model::ModelConfig& model,
                                       const runtime::Cluster& cluster,
                                       const std::vector<DecodedSequence>& prompts) {
  std::size_t longest = 0;
  std::size_t together = 0;
  for (const auto& prompt : prompts) {
    longest = std::max(longest, prompt.prompt_size);
    together += prompt.prompt_size;
  }
  engine::DecoderOptions options;
  options.model = model;
  options.mesh = cluster.mesh;
  options.rank = cluster.rank;
  for (const auto layers : config.integers("parallel.stage_layers")) {
    options.stage_layers.push_back(static_cast<int>(layers));
  }
  options.dtype = engine::compute_type(config);
  const auto replicas = static_cast<std::int64_t>(cluster.mesh.degree(Axis::data));
  const auto count = static_cast<std::int64_t>(prompts.size());
  const auto share = (count + replicas - 1) / replicas;
  options.capacity.slots = static_cast<int>(std::min(request.batch, share));
  options.capacity.positions = static_cast<std::int64_t>(longest) + request.max_tokens;
  options.rows_at_once = std::max<std::int64_t>(
      options.capacity.slots, std::min(prompt_rows_at_once, static_cast<std::int64_t>(together)));
  return options;
}

Answer answer_of(const DecodedSequence& sequence, const Tokenizer& tokenizer) {
  Answer answer;
  answer.prompt = static_cast<std::size_t>(sequence.index);
  answer.prompt_tokens = static_cast<std::int64_t>(sequence.prompt_size);
  answer.tokens.assign(sequence.ids.begin() + static_cast<std::ptrdiff_t>(sequence.prompt_size),
                       sequence.ids.end());
  answer.text = tokenizer.decode(answer.tokens);
  answer.ending = sequence.ending.value_or(Ending::length);
  return answer;
}

/// Collective over the data-parallel group: the ends of all sequences, in the order of the prompts.
std::vector<DecodedSequence> gather(std::vector<DecodedSequence> all,
                                    const std::vector<DecodedSequence>& mine,
                                    std::int64_t max_tokens, comm::ProcessGroup& data) {
  const auto replicas = static_cast<std::size_t>(data.size());
  const auto share = (all.size() + replicas - 1) / replicas;
  // Of each sequence: how many tokens, how it ended, the tokens.
  const auto width = static_cast<std::size_t>(max_tokens) + 2;
  std::vector<std::int32_t> own(share * width);
  for (std::size_t index = 0; index < mine.size(); ++index) {
    auto* record = own.data() + index * width;
    record[0] = static_cast<std::int32_t>(mine[index].ids.size() - mine[index].prompt_size);
    record[1] = mine[index].ending == Ending::stop_token ? 1 : 0;
    std::copy(mine[index].ids.begin() + static_cast<std::ptrdiff_t>(mine[index].prompt_size),
              mine[index].ids.end(), record + 2);
  }
  std::vector<std::int32_t> everybodys(own.size() * replicas);
  const auto tensor = [](std::vector<std::int32_t>& values) {
    return device::Tensor(values.data(), device::DType::i32,
                          {static_cast<std::int64_t>(values.size())});
  };
  data.host_group().all_gather(tensor(own), tensor(everybodys));
  for (std::size_t index = 0; index < all.size(); ++index) {
    const auto* record = everybodys.data() + (index % replicas * share + index / replicas) * width;
    all[index].ids.insert(all[index].ids.end(), record + 2, record + 2 + record[0]);
    all[index].ending = record[1] == 1 ? Ending::stop_token : Ending::length;
  }
  return all;
}

void say_speed(const std::vector<DecodedSequence>& sequences, double seconds) {
  std::size_t prompt_tokens = 0;
  std::size_t new_tokens = 0;
  for (const auto& sequence : sequences) {
    prompt_tokens += sequence.prompt_size;
    new_tokens += sequence.ids.size() - sequence.prompt_size;
  }
  base::log::info("generate",
                  "{} prompt(s) of {} tokens, {} new tokens in {:.2f} s: {:.1f} tokens/s",
                  sequences.size(), prompt_tokens, new_tokens, seconds,
                  static_cast<double>(new_tokens) / seconds);
}

}  // namespace

void generate(const GenerateRequest& request, const config::Config& config, Session& session,
              const AnswerListener& listener) {
  auto& cluster = session.cluster;
  auto& world = *cluster.world;
  const auto model = runtime::agree(world, model_of_weights(request.weights));
  const auto tokenizer = runtime::agree(world, open_tokenizer(request, config));
  const auto prompts = runtime::agree(world, read_prompts(request, tokenizer, model));
  const auto options = decoder_options(request, config, model, cluster, prompts);
  runtime::agree(world, engine::check(options));

  auto memory = engine::Memory::on(session.kernels->device(), engine::measure(options));
  engine::Decoder decoder(options, groups_of(cluster), *session.kernels, memory);
  load_parameters(request.weights, model, {session.kernels->device(), decoder.parameter_parts()},
                  world);

  const DecodingLimits limits{options.capacity.slots, options.rows_at_once, request.max_tokens,
                              tokenizer.vocab_size(), tokenizer.stop_tokens()};
  const bool speaks = world.rank() == 0;
  ReplicaDecoding decoding(decoder, limits, request.sampling, share_of(prompts, *cluster.dp),
                           [&](const DecodedSequence& sequence, std::int32_t token) {
                             if (!speaks || sequence.index != 0) return;
                             listener.piece(tokenizer.decode_bytes({&token, 1}));
                           });
  const auto begin = std::chrono::steady_clock::now();
  decoding.run();
  const auto all = gather(prompts, decoding.sequences(), request.max_tokens, *cluster.dp);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  if (speaks) {
    for (const auto& sequence : all) listener.answer(answer_of(sequence, tokenizer));
  }
  say_speed(all, seconds.count());
}

}  // namespace trireme::train
