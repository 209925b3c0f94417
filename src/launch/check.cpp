#include "trireme/launch/check.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"

#include "text.hpp"

#include <algorithm>

namespace trireme::launch {
namespace {

using base::format;

/// "--tensor-parallel = 3", or the variable that said so.
std::string cited(const Given& given) {
  const bool by_option = given.origin.find("--") != std::string::npos;
  return format("{} = {}", by_option ? "--" + std::string(given.term->option) : given.origin,
                shown(given.value));
}

/// The last value that --trireme-set gives to a key; null if none.
const Given* last_setting(const Contract& contract, std::string_view key) {
  const Given* last = nullptr;
  for (const auto& given : contract.given()) {
    if (given.term->is_setting && given.value.substr(0, given.value.find('=')) == key) {
      last = &given;
    }
  }
  return last;
}

std::string setting_value(const Given* setting) {
  return setting == nullptr ? std::string{} : setting->value.substr(setting->value.find('=') + 1);
}

/// Looks at one request from all sides and gathers what cannot be.
class Judge {
 public:
  Judge(const Contract& contract, const Geometry& geometry)
      : contract_(contract),
        geometry_(geometry),
        tasks_(task_count(geometry)),
        node_tasks_(tasks_on_a_node(geometry)),
        node_gpus_(gpus_on_a_node(geometry)) {}

  std::vector<std::string> judge() {
    against_off();
    if (!mistakes_.empty()) return mistakes_;
    against_settings();
    against_tasks();
    against_node();
    against_gpus();
    against_distribution();
    against_time();
    against_batch();
    return std::move(mistakes_);
  }

 private:
  std::int64_t degree(std::string_view option) const {
    return contract_.number(option).value_or(1);
  }
  std::int64_t replica() const { return degree("tensor-parallel") * degree("pipeline-parallel"); }

  /// "--tensor-parallel = 3 times --pipeline-parallel = 2": the degrees that were given.
  std::string degrees(bool with_data) const {
    std::vector<std::string> parts;
    for (const char* option : {"tensor-parallel", "pipeline-parallel", "data-parallel"}) {
      const auto* given = contract_.find(option);
      const bool is_data = option == std::string_view("data-parallel");
      if (given != nullptr && contract_.number(option) && (!is_data || with_data)) {
        parts.push_back(cited(*given));
      }
    }
    return format("{}", base::join(parts, " times "));
  }

  template <typename... Arguments>
  void refuse(base::format_string<Arguments...> text, Arguments&&... arguments) {
    mistakes_.push_back(format(text, std::forward<Arguments>(arguments)...));
  }

  void against_off() {
    if (!contract_.off()) return;
    for (const auto& given : contract_.given()) {
      if (given.term->option == "trireme" || given.origin.find("--") == std::string::npos) continue;
      refuse(
          "--trireme = off and {} contradict each other (off ignores all of them); leave one out",
          cited(given));
    }
  }

  void against_settings() {
    for (const auto& given : contract_.given()) {
      if (given.term->key.empty()) continue;
      const auto* setting = last_setting(contract_, given.term->key);
      if (setting == nullptr || setting_value(setting) == given.value) continue;
      refuse("{} and --trireme-set = {} contradict each other (both set the key {}); leave one out",
             cited(given), setting->value, given.term->key);
    }
  }

  void against_tasks();
  void against_node();
  void against_gpus();
  void against_distribution();
  void against_time();
  void against_batch();

  const Contract& contract_;
  const Geometry& geometry_;
  const std::optional<int> tasks_;
  const std::optional<int> node_tasks_;
  const std::optional<int> node_gpus_;
  std::vector<std::string> mistakes_;
};

std::string tasks_text(int tasks) {
  return format("{} {}", tasks, tasks == 1 ? "task" : "tasks");
}

/// Divisors of the largest size that a degree may have beside the others: "1, 2, 4".
std::string divisors_text(std::int64_t size) {
  return format(
      "{}", base::join(base::divisors(static_cast<int>(std::max<std::int64_t>(size, 1))), ", "));
}

void Judge::against_tasks() {
  if (!tasks_) return;
  const std::int64_t tasks = *tasks_;
  const auto data = contract_.number("data-parallel");
  const std::int64_t mesh = replica() * data.value_or(1);
  if (data ? mesh == tasks : tasks % mesh == 0) return;
  if (data) {
    refuse(
        "{} makes a mesh of {} ranks, but {} start (every task holds one place of the mesh); "
        "start --ntasks={}, or say --data-parallel=auto",
        degrees(true), mesh, tasks_text(*tasks_), mesh);
    return;
  }
  const std::int64_t below = tasks / mesh * mesh;
  const auto other = below > 0 ? format("{} or {}", below, below + mesh) : format("{}", mesh);
  const bool tensor_alone = contract_.number("tensor-parallel").has_value();
  const std::int64_t rest = tensor_alone ? degree("pipeline-parallel") : degree("tensor-parallel");
  const auto choices = tasks % rest == 0 ? tasks / rest : tasks;
  refuse(
      "{} does not divide the {} that start (every task holds one place of the mesh); try "
      "--ntasks={}, or --{}={}",
      degrees(false), tasks_text(*tasks_), other,
      tensor_alone ? "tensor-parallel" : "pipeline-parallel", divisors_text(choices));
}

void Judge::against_node() {
  const auto* given = contract_.find("tensor-parallel");
  if (given == nullptr || !node_tasks_ || *node_tasks_ % degree("tensor-parallel") == 0) return;
  refuse(
      "{} does not divide the {} of a node (tensor-parallel ranks talk in every layer and stay "
      "inside a node); try {}, or --ntasks-per-node={}",
      cited(*given), tasks_text(*node_tasks_), divisors_text(*node_tasks_), given->value);
}

void Judge::against_gpus() {
  if (!node_gpus_ || *node_gpus_ < 1) return;
  const auto backend = setting_value(last_setting(contract_, "comm.backend"));
  const auto numerics = setting_value(last_setting(contract_, "numerics.backend"));
  // Ranks that compute on CPUs, or talk through host memory, may share a GPU or need none.
  if (numerics == "cpu" || numerics == "reference") return;
  if (backend == "mpi" || backend == "shared" || backend == "staged") return;
  const int gpus = *node_gpus_;
  if (node_tasks_) {
    if (*node_tasks_ <= gpus) return;
    refuse(
        "{} a node are more than its {} GPUs (each rank computes on a GPU of its own); try "
        "--ntasks-per-node={}, or --gpus-per-node={}, or --trireme-set=numerics.backend=cpu",
        tasks_text(*node_tasks_), gpus, gpus, *node_tasks_);
    return;
  }
  const auto* tensor = contract_.find("tensor-parallel");
  if (tensor != nullptr && gpus % degree("tensor-parallel") != 0) {
    refuse(
        "{} does not divide the {} GPUs of a node (tensor-parallel ranks stay inside a node, "
        "one on each GPU); try {}",
        cited(*tensor), gpus, divisors_text(gpus));
    return;
  }
  if (tasks_ || !geometry_.nodes) return;
  const std::int64_t all = std::int64_t{gpus} * *geometry_.nodes;
  const auto data = contract_.number("data-parallel");
  const std::int64_t mesh = replica() * data.value_or(1);
  if (data ? mesh <= all : all % mesh == 0) return;
  refuse(
      "{} does not fit {} GPUs on {} nodes (one rank computes on each GPU); try a product that "
      "is one of {}",
      degrees(true), gpus, *geometry_.nodes, divisors_text(all));
}

void Judge::against_distribution() {
  const auto& order = geometry_.distribution;
  const bool spreads = order.starts_with("cyclic") || order.starts_with("plane=1,") ||
                       order == "plane=1" || order.starts_with("arbitrary");
  const auto* given = contract_.find("tensor-parallel");
  if (!spreads || given == nullptr || degree("tensor-parallel") == 1) return;
  if (geometry_.nodes == 1 || contract_.find("trireme-order") != nullptr) return;
  refuse(
      "{} does not go with --distribution = {} (neighbouring ranks, which share every matrix, "
      "would lie on different nodes); use --distribution=block, or --trireme-order=topology",
      cited(*given), shown(order));
}

void Judge::against_time() {
  const auto lead = contract_.number("trireme-signal-lead");
  const auto limit = geometry_.time_limit_seconds;
  if (!lead || !limit || *lead < *limit) return;
  refuse(
      "{} is not shorter than the time limit of {} (the job would stop before it has begun); "
      "use auto, or less than {}",
      cited(*contract_.find("trireme-signal-lead")), base::duration_text(*limit), *limit);
}

void Judge::against_batch() {
  const auto* setting = last_setting(contract_, "train.global_batch");
  const auto global = parse_number(setting_value(setting));
  const auto micro = contract_.number("micro-batch");
  if (!global || !micro) return;
  const std::int64_t share = std::int64_t{*micro} * degree("data-parallel");
  if (*global % share == 0) return;
  refuse(
      "{} sequences on {} replicas do not divide train.global_batch = {} (every replica takes as "
      "many micro-batches); try a --micro-batch of {}",
      cited(*contract_.find("micro-batch")), degree("data-parallel"), *global,
      divisors_text(*global % degree("data-parallel") == 0 ? *global / degree("data-parallel")
                                                           : *global));
}

/// Program, MPI and the smallest models fit into less; what people train does not.
constexpr std::int64_t little_memory_mib = 1024;

/// Where memory_of_a_task() has it from.
std::string memory_option(const Geometry& geometry) {
  if (geometry.cpu_memory) return format("--mem-per-cpu={}M", *geometry.cpu_memory);
  if (geometry.node_memory) return format("--mem={}M", *geometry.node_memory);
  return format("--mem-per-gpu={}M", geometry.gpu_memory.value_or(0));
}

/// Slurm's default memory is often that of one core, and the step is killed only once it computes.
std::optional<std::string> memory_advice(const Geometry& geometry) {
  const auto memory = memory_of_a_task(geometry);
  if (!memory || *memory >= little_memory_mib) return std::nullopt;
  return format(
      "{} leaves {} MiB for each rank (Slurm kills the step when it takes more); ask for more, for "
      "example --mem=0 for all of a node: trireme plan CONFIG --world N tells what a rank needs",
      memory_option(geometry), *memory);
}

}  // namespace

std::vector<std::string> impossibilities(const Contract& contract, const Geometry& geometry) {
  return Judge(contract, geometry).judge();
}

std::vector<std::string> advice(const Contract& contract, const Geometry& geometry,
                                const Site& site) {
  std::vector<std::string> texts;
  if (!contract.active() || geometry.quiet) return texts;
  const auto tasks = task_count(geometry);
  const bool many = !tasks || *tasks > 1;
  if (geometry.command == Command::srun && many) {
    const auto& mpi = geometry.mpi.empty() ? site.default_mpi : geometry.mpi;
    if (!mpi.empty() && !mpi.starts_with("pmix")) {
      texts.push_back(format("{} (every task would see a world of one); use --mpi=pmix",
                             geometry.mpi.empty() ? "srun starts without a PMIx, which is not this "
                                                    "site's default"
                                                  : "--mpi=" + shown(mpi) + " is no PMIx"));
    }
    if (!geometry.kill_on_bad_exit && !geometry.waits) {
      texts.emplace_back(
          "without --wait=10 a rank that dies while MPI starts leaves the others waiting (srun "
          "does "
          "not end them); add it, or export SLURM_WAIT=10");
    }
  }
  if (geometry.command == Command::srun && !site.job_cpus_per_task.empty() &&
      !geometry.cpus_per_task) {
    texts.emplace_back(
        format("the job's --cpus-per-task={0} does not reach this step (srun ignores "
               "SLURM_CPUS_PER_TASK since Slurm 22.05); add --cpus-per-task={0}, or "
               "export SRUN_CPUS_PER_TASK={0}",
               shown(site.job_cpus_per_task)));
  }
  if (contract.number("tensor-parallel").value_or(1) > 1 && geometry.nodes.value_or(1) > 1 &&
      geometry.tasks && !geometry.tasks_per_node) {
    texts.emplace_back(
        "Slurm may put unequal numbers of tasks on the nodes (tensor-parallel ranks would lie on "
        "two of them); add --ntasks-per-node");
  }
  const bool bound_gpus = geometry.gpu_bind.find("single") != std::string::npos ||
                          geometry.gpu_bind.find("per_task") != std::string::npos ||
                          geometry.gpu_bind.find("map_gpu") != std::string::npos;
  if (geometry.gpus_per_task || geometry.tasks_per_gpu || bound_gpus) {
    texts.emplace_back(
        "GPUs are given to single tasks (ranks of a node then cannot reach each other's memory); "
        "use --gpus-per-node alone, each rank takes its own");
  }
  if (auto text = memory_advice(geometry)) texts.push_back(*std::move(text));
  if (!geometry.in_allocation && !geometry.no_kill && geometry.nodes.value_or(1) > 1) {
    texts.emplace_back(
        "without --no-kill the loss of one node ends the whole job (nothing is left to say why, or "
        "to requeue it); add --no-kill");
  }
  return texts;
}

}  // namespace trireme::launch
