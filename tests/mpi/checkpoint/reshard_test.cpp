// SPDX-License-Identifier: Apache-2.0
// Checkpoints of real engines in nine layouts, each loaded in each of the nine.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/place.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/engine/measure.hpp"
#include "trireme/model/owned_tensors.hpp"
#include "trireme/model/parameters.hpp"
#include "trireme/optim/matrix_rule.hpp"
#include "trireme/train/checkpoints.hpp"

#include "mpi/training/training.hpp"
#include "support/mpi/world.hpp"
#include "support/temporary_folder.hpp"
#include "train/saving/saved_contents.hpp"

#include <catch2/catch.hpp>

#include <bit>
#include <limits>
#include <map>
#include <optional>

using namespace trireme;
using namespace trireme::testing;
using device::DType;

namespace {

struct Arrangement {
  int pipeline;
  int data;
  int tensor;
  int zero_level;
  /// With two virtual stages where it has them.
  layout::ScheduleKind schedule = layout::ScheduleKind::one_forward_one_backward;
  optim::RuleKind rule = optim::RuleKind::adamw;
  ownership::Assignment assignment = ownership::Assignment::padded;
  int context = 1;

  layout::Mesh mesh() const { return layout::Mesh::of(pipeline, data, tensor, context); }
  int ranks() const { return mesh().world_size(); }
  bool has_this_rank() const { return mpi().world_rank().value() < ranks(); }
  std::string text() const {
    return base::format("{}, zero {}, {}", mesh().text(), zero_level, layout::name(schedule));
  }
};

constexpr auto plain = layout::ScheduleKind::one_forward_one_backward;
constexpr auto interleaved = layout::ScheduleKind::interleaved;
constexpr auto zb_v = layout::ScheduleKind::zero_bubble_v;
constexpr auto adamw = optim::RuleKind::adamw;
constexpr auto padded = ownership::Assignment::padded;

/// With four tensor-parallel ranks each key head is on two of them.
const std::vector<Arrangement> arrangements{{1, 1, 1, 0},
                                            {1, 2, 1, 1},
                                            {2, 1, 1, 0, interleaved},
                                            {1, 1, 4, 0},
                                            {3, 1, 2, 0},
                                            {2, 2, 2, 1, zb_v},
                                            {1, 2, 2, 3},
                                            {1, 2, 2, 1, plain, adamw, padded, 2},
                                            {2, 1, 1, 0, plain, adamw, padded, 3}};

constexpr auto contiguous = ownership::Assignment::contiguous;

const std::vector<Arrangement> arrangements_of_muon{
    {1, 1, 1, 0, plain, optim::RuleKind::muon},
    {1, 3, 1, 1, plain, optim::RuleKind::muon},
    {1, 3, 2, 1, plain, optim::RuleKind::muon, contiguous},
    {2, 1, 1, 0, interleaved, optim::RuleKind::muon},
    {1, 1, 4, 0, plain, optim::RuleKind::muon},
    {2, 2, 2, 1, plain, optim::RuleKind::muon}};

const std::vector<Arrangement> arrangements_of_soap{
    {1, 3, 1, 1, plain, optim::RuleKind::soap, contiguous},
    {1, 1, 1, 0, plain, optim::RuleKind::soap},
    {1, 3, 1, 1, plain, optim::RuleKind::soap},
    {1, 2, 2, 0, plain, optim::RuleKind::soap},
    {1, 1, 4, 0, plain, optim::RuleKind::soap},
    {2, 2, 2, 1, plain, optim::RuleKind::soap}};

const std::vector<Arrangement> arrangements_of_shampoo{
    {1, 1, 1, 0, plain, optim::RuleKind::shampoo},
    {2, 1, 1, 0, interleaved, optim::RuleKind::shampoo},
    {1, 3, 2, 1, plain, optim::RuleKind::shampoo}};

constexpr int saved_after = 2;
/// The first step's update depends on moments, and the second step shows it.
constexpr int more_steps = 2;

engine::EngineOptions options_for(const Arrangement& arrangement) {
  engine::EngineOptions options;
  options.model = tiny(model::Architecture::llama);
  options.model.tie_word_embeddings = true;
  options.sharding.mesh = arrangement.mesh();
  options.sharding.rank = mpi().world_rank();
  options.schedule.kind = arrangement.schedule;
  options.schedule.virtual_stages = layout::has_virtual_stages(arrangement.schedule) ? 2 : 1;
  options.schedule.micro_batch = 1;
  options.schedule.micro_batches =
      (optim::traits(arrangement.rule).updates_matrices ? 12 : 4) / arrangement.data;
  options.sharding.rule.kind = arrangement.rule;
  options.schedule.sequence_length = 12;
  options.sharding.sequence_parallel =
      arrangement.tensor > 1 ? model::SequenceParallel::on : model::SequenceParallel::off;
  options.sharding.zero_level = arrangement.zero_level;
  options.sharding.assignment = arrangement.assignment;
  options.sharding.bucket_bytes = 64 << 10;
  options.numerics.clip_norm = 1.0;
  options.numerics.seed = 7;
  return options;
}

/// Bits of all logical tensors, one after another.
class State {
 public:
  /// Nobody has anything yet.
  explicit State(optim::RuleKind rule) {
    std::size_t count = 0;
    for (const auto& parameter : model::parameters(options_for(arrangements.front()).model)) {
      const auto elements = layout::element_count(parameter.tensor.shape);
      const auto add = [&](const std::string& purpose, std::int64_t size) {
        begins_[purpose + parameter.tensor.name] = count;
        count += static_cast<std::size_t>(size);
      };
      add("", elements);
      const bool whole = optim::traits(rule).updates_matrices && model::is_rule_matrix(parameter);
      const auto content = whole ? optim::Content::matrix : optim::Content::elements;
      for (const auto& name : optim::state_names(optim::Rule{.kind = rule}, content)) {
        add(name + "/", elements);
      }
      if (!whole) continue;
      const auto& shape = parameter.tensor.shape;
      const auto matrices = optim::make_matrix_rule(optim::Rule{.kind = rule}, DType::f32);
      for (const auto& state : matrices->owner_states({shape[0], shape[1]})) {
        add(state.name + "/", state.shape.rows * state.shape.columns);
      }
    }
    bits_.assign(count, nobodys);
  }

  template <typename Part>
  void add(const Part& part) {
    each(part, [&](std::int32_t bits, std::int32_t& place) { place = bits; });
  }
  template <typename Part>
  std::int64_t wrong_elements(const Part& part) {
    std::int64_t wrong = 0;
    each(part, [&](std::int32_t bits, std::int32_t place) { wrong += bits == place ? 0 : 1; });
    return wrong;
  }
  /// Collective over the group. What any of the ranks has.
  void put_together(comm::ProcessGroup& group) {
    const auto count = static_cast<std::int64_t>(bits_.size());
    group.all_reduce({bits_.data(), DType::i32, {count}}, comm::ReduceOp::max);
  }

 private:
  /// The smallest number of all.
  static constexpr std::int32_t nobodys = std::numeric_limits<std::int32_t>::min();

  template <typename Part, typename Act>
  void each(const Part& part, const Act& act) {
    const bool vector = part.shape.size() == 1;
    const auto width = vector ? 1 : part.shape[1];
    const auto columns = vector ? 1 : part.box.length[1];
    const auto first = vector ? 0 : part.box.offset[1];
    auto* const tensor = bits_.data() + begins_.at(part.name);
    for (std::int64_t at = 0; at < layout::element_count(part.box); ++at) {
      const auto row = part.box.offset[0] + at / columns;
      act(std::bit_cast<std::int32_t>(part.values.f32()[at]),
          tensor[row * width + first + at % columns]);
    }
  }

  std::map<std::string, std::size_t> begins_;
  std::vector<std::int32_t> bits_;
};

/// This rank's engine in a layout, and the group of all of its ranks.
class Run {
 public:
  explicit Run(const Arrangement& arrangement)
      : options_(options_for(arrangement)),
        world_(mpi().make_group("layout", ranks_of(arrangement), {comm::Backend::automatic, 60})),
        groups_(mpi_groups(options_.sharding.mesh)),
        kernels_(device::make_cpu_kernels(1)),
        memory_(engine::Memory::on(kernels_->device(), engine::measure(options_))),
        engine_(options_, groups_.views(), *kernels_, memory_) {}

  engine::Engine& engine() { return engine_; }
  comm::ProcessGroup& world() { return *world_; }
  /// Steps from `first`, counted from 0.
  std::vector<Observed> train(int first, int steps) {
    std::vector<Observed> observed;
    for (int step = first; step < first + steps; ++step) {
      fill(engine_, step);
      engine_.run_schedule();
      const auto reduced = engine_.reduce_gradients();
      engine_.update({step + 1, 3e-3, reduced.gradient_norm});
      observed.push_back({reduced.loss, reduced.gradient_norm});
    }
    return observed;
  }
  void spoil() {
    for (const auto& part : engine_.state_parts()) {
      std::fill_n(part.values.f32(), part.values.element_count(), -7.0F);
    }
  }

 private:
  static std::vector<base::Rank> ranks_of(const Arrangement& arrangement) {
    std::vector<base::Rank> ranks;
    for (int rank = 0; rank < arrangement.ranks(); ++rank) ranks.emplace_back(rank);
    return ranks;
  }

  engine::EngineOptions options_;
  std::unique_ptr<comm::ProcessGroup> world_;
  comm::OwnedAxisGroups groups_;
  std::unique_ptr<device::Kernels> kernels_;
  engine::Memory memory_;
  engine::Engine engine_;
};

/// A layout's save, and the steps that it did afterwards.
struct Saved {
  std::filesystem::path run;
  State state;
  std::vector<Observed> next;
};

/// Collective over all ranks.
Saved save_in(const Arrangement& arrangement, const std::filesystem::path& run,
              comm::ProcessGroup& all) {
  still_going("save in " + arrangement.text());
  Saved saved{run, State(arrangement.rule), {}};
  if (arrangement.has_this_rank()) {
    Run running(arrangement);
    running.engine().initialise();
    running.train(0, saved_after);
    for (const auto& part : running.engine().state_parts()) saved.state.add(part);
    const auto config = base::value_or_throw(config::Config::resolve({}));
    const train::Progress progress{.step = saved_after, .next_sample = 8};
    const std::string version = "test";
    const auto checkpoints = checkpoint::checkpoints_of_run(run);
    const auto contents = train::saved_contents(running.engine().sharding());
    train::save({run, checkpoints, progress, config, version, contents}, running.engine(),
                running.world());
    saved.next = running.train(saved_after, more_steps);
  }
  saved.state.put_together(all);
  // The first rank is in every layout.
  saved.next.resize(more_steps);
  constexpr std::int64_t words = more_steps * sizeof(Observed) / sizeof(std::int32_t);
  all.broadcast({saved.next.data(), DType::i32, {words}}, 0);
  return saved;
}

/// The steps after a load: those of the layout that has saved, bit by bit if it loads, too. With
/// SOAP the last bits of gradients lead further apart (docs/numerics.md), but not before an update.
void go_on(Run& running, const Saved& saved, optim::RuleKind rule, bool is_same_layout) {
  const auto next = running.train(saved_after, more_steps);
  if (is_same_layout) CHECK(next == saved.next);
  CHECK(distance({next.front()}, {saved.next.front()}) <= 1e-6);
  CHECK(distance(next, saved.next) <= (rule == optim::RuleKind::soap ? 1e-3 : 1e-5));
}

void load_in(Run& running, Saved& saved) {
  auto& engine = running.engine();
  running.spoil();
  const auto [progress, report] = train::resume_from(saved.run, engine, running.world());
  CHECK(progress.step == saved_after);
  CHECK(progress.next_sample == 8);
  // Files of few blocks: each rank may read one more than its part.
  REQUIRE(report.has_value());
  CHECK(report->read_bytes <= report->box_bytes + (std::uint64_t{2} << 20));
  std::int64_t wrong = 0;
  for (const auto& part : engine.state_parts()) wrong += saved.state.wrong_elements(part);
  CHECK(wrong == 0);
  // The masters are what the model computes with; of some, shards lie nowhere else.
  for (const auto& part : engine.parameter_parts()) {
    if (part.values) wrong += saved.state.wrong_elements(part);
  }
  CHECK(wrong == 0);
}

void load_each_in_each(const std::vector<Arrangement>& layouts) {
  const auto all = mpi().make_world({comm::Backend::automatic, 120});
  std::optional<tests::TemporaryFolder> folder;
  if (all->rank() == 0) folder.emplace();
  const std::filesystem::path path =
      comm::broadcast_bytes(*all, folder ? folder->path().string() : "");
  std::vector<Saved> saves;
  for (const auto& arrangement : layouts) {
    saves.push_back(save_in(arrangement, path / base::format("{}", saves.size()), *all));
  }
  for (std::size_t to = 0; to < layouts.size(); ++to) {
    if (!layouts[to].has_this_rank()) continue;
    Run running(layouts[to]);
    for (std::size_t from = 0; from < saves.size(); ++from) {
      INFO(layouts[from].text() << " to " << layouts[to].text());
      still_going(layouts[from].text() + " to " + layouts[to].text());
      load_in(running, saves[from]);
      go_on(running, saves[from], layouts[to].rule, from == to);
    }
  }
  all->barrier();
}

}  // namespace

TEST_CASE("each of nine layouts goes on bit for bit from what each of the nine saved") {
  load_each_in_each(arrangements);
}

TEST_CASE("layouts of muon go on from what each of them saved, momentum by matrix") {
  load_each_in_each(arrangements_of_muon);
}

TEST_CASE("layouts of shampoo and soap go on from what each of them saved, factors by matrix") {
  load_each_in_each(arrangements_of_soap);
  load_each_in_each(arrangements_of_shampoo);
}
