// SPDX-License-Identifier: Apache-2.0
#include "trireme/launch/validation.hpp"

#include "trireme/base/format.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace trireme;
using launch::Command;

namespace {

using Words = std::vector<std::string>;

/// The contract of options such as "--tensor-parallel=2" in a command line, whose other words are
/// Slurm's.
launch::Contract contract_of(const Words& words) {
  launch::Contract contract;
  for (const auto& word : words) {
    const auto equals = word.find('=');
    const auto* option =
        word.starts_with("--") ? launch::find_option(word.substr(2, equals - 2)) : nullptr;
    if (option == nullptr) continue;
    const auto value = launch::parse_value(*option, word.substr(equals + 1), word);
    contract.put({option, *value, "sbatch --" + std::string(option->name)});
  }
  return contract;
}

std::string refusals(Command command, const Words& words) {
  const auto request = launch::read_resource_request(command, {}, {}, words);
  return base::format("{}", base::join(launch::validate(contract_of(words), request), "\n"));
}

std::string advices(Command command, const Words& words,
                    const launch::StepDefaults& defaults = {}) {
  const auto request = launch::read_resource_request(command, {}, {}, words);
  return base::format("{}",
                      base::join(launch::advice(contract_of(words), request, defaults), "\n"));
}

bool holds(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("possible requests are let through") {
  for (const Words& words : {
           Words{"-n8", "--tensor-parallel=2", "--pipeline-parallel=2"},
           Words{"-n8", "--tensor-parallel=2", "--pipeline-parallel=2", "--data-parallel=2"},
           Words{"-N16", "--gpus-per-node=8", "--tensor-parallel=8", "--pipeline-parallel=4"},
           Words{"-N4", "--ntasks-per-node=2", "--tensor-parallel=2", "--data-parallel=auto"},
           Words{"-N2-4", "--tensor-parallel=3"},
           Words{"-N1", "--ntasks-per-node=8", "--gpus-per-node=2",
                 "--trireme-set=numerics.backend=cpu"},
           Words{"-N1", "--ntasks-per-node=8", "--gpus-per-node=2",
                 "--trireme-set=comm.backend=mpi"},
           Words{"--tensor-parallel=3"},
           Words{"-t10", "--trireme-signal-lead=599"},
           Words{"--trireme-set=parallel.tensor=2", "--tensor-parallel=2"},
           Words{"-n8", "--micro-batch=2", "--data-parallel=8",
                 "--trireme-set=train.global_batch=32"},
       }) {
    CAPTURE(words);
    CHECK(refusals(Command::sbatch, words).empty());
  }
}

TEST_CASE("a layout that the job chooses fills the tasks, if the given degrees divide them") {
  CHECK(refusals(Command::sbatch, {"-n8", "--parallel=auto"}).empty());
  CHECK(refusals(Command::sbatch, {"-n8", "--parallel=auto", "--data-parallel=2"}).empty());
  CHECK(refusals(Command::sbatch, {"-n8", "--tensor-parallel=auto", "--data-parallel=2"}).empty());
  CHECK(refusals(Command::sbatch, {"-n8", "--parallel=auto", "--tensor-parallel=4"}).empty());
  CHECK(holds(refusals(Command::sbatch, {"-n8", "--parallel=auto", "--tensor-parallel=3"}),
              "--tensor-parallel = 3 does not divide the 8 tasks that start"));
  CHECK(holds(refusals(Command::sbatch, {"-n8", "--parallel=auto", "--data-parallel=3"}),
              "8 tasks start"));
  CHECK(holds(refusals(Command::sbatch, {"-n8", "--parallel=auto", "--tensor-parallel=2",
                                         "--pipeline-parallel=2", "--data-parallel=1"}),
              "makes a mesh of 4 ranks, but 8 tasks start"));
}

TEST_CASE("degrees that do not divide the tasks are refused with those that do") {
  CHECK(refusals(Command::sbatch, {"-n8", "--tensor-parallel=3"}) ==
        "--tensor-parallel = 3 does not divide the 8 tasks that start (every task holds one place "
        "of the mesh); try --ntasks=6 or 9, or --tensor-parallel=1, 2, 4, 8");
  CHECK(refusals(Command::srun, {"-n8", "--tensor-parallel=2", "--pipeline-parallel=8", "x"}) ==
        "--tensor-parallel = 2 times --pipeline-parallel = 8 does not divide the 8 tasks that "
        "start (every task holds one place of the mesh); try --ntasks=16, or --tensor-parallel=1");
  CHECK(holds(refusals(Command::srun, {"--pipeline-parallel=2", "x"}),
              "does not divide the 1 task that start"));
  CHECK(holds(refusals(Command::sbatch, {"-n8", "--pipeline-parallel=3"}),
              "or --pipeline-parallel=1, 2, 4, 8"));
}

TEST_CASE("a whole mesh must have as many places as there are tasks") {
  CHECK(refusals(Command::sbatch, {"-n8", "--tensor-parallel=2", "--data-parallel=2"}) ==
        "--tensor-parallel = 2 times --data-parallel = 2 makes a mesh of 4 ranks, but 8 tasks "
        "start (every task holds one place of the mesh); start --ntasks=4, or say "
        "--data-parallel=auto");
  // 2^60 ranks: no overflow makes it fit.
  CHECK(holds(refusals(Command::sbatch, {"-n8", "--tensor-parallel=1048576",
                                         "--pipeline-parallel=1048576", "--data-parallel=1048576"}),
              "makes a mesh of 1152921504606846976 ranks"));
}

TEST_CASE("tensor-parallel ranks stay inside a node") {
  CHECK(refusals(Command::sbatch, {"-N4", "--ntasks-per-node=2", "--tensor-parallel=4"}) ==
        "--tensor-parallel = 4 does not divide the 2 tasks of a node (tensor-parallel ranks talk "
        "in every layer and stay inside a node); try 1, 2, or --ntasks-per-node=4");
  CHECK(holds(refusals(Command::sbatch, {"-N2", "-n12", "--tensor-parallel=4"}),
              "does not divide the 6 tasks of a node"));
  CHECK(holds(refusals(Command::sbatch, {"-N2", "-n8", "-mcyclic", "--tensor-parallel=2"}),
              "does not go with --distribution = cyclic"));
  CHECK(refusals(Command::sbatch, {"-N2", "-n8", "-mblock:cyclic", "--tensor-parallel=2"}).empty());
}

TEST_CASE("each rank computes on a GPU of its own") {
  CHECK(holds(refusals(Command::sbatch, {"--gpus-per-node=4", "--tensor-parallel=8"}),
              "does not divide the 4 GPUs of a node"));
  CHECK(holds(refusals(Command::sbatch, {"--gpus-per-node=4", "-N2", "--pipeline-parallel=3"}),
              "does not fit 4 GPUs on 2 nodes"));
  CHECK(holds(refusals(Command::sbatch, {"--gpus-per-node=4", "-N2", "--data-parallel=16"}),
              "does not fit 4 GPUs on 2 nodes"));
  CHECK(refusals(Command::sbatch,
                 {"-N2", "--gpus-per-node=4", "--ntasks-per-node=8", "--tensor-parallel=2"}) ==
        "8 tasks a node are more than its 4 GPUs (each rank computes on a GPU of its own); try "
        "--ntasks-per-node=4, or --gpus-per-node=8, or --trireme-set=numerics.backend=cpu");
}

TEST_CASE("requests that contradict themselves are refused") {
  CHECK(holds(refusals(Command::sbatch, {"--trireme=off", "--tensor-parallel=2"}),
              "contradict each other"));
  CHECK(holds(refusals(Command::sbatch, {"--tensor-parallel=2", "--trireme-set=parallel.tensor=4"}),
              "both set the key parallel.tensor"));
  CHECK(holds(refusals(Command::sbatch, {"-t1", "--trireme-signal-lead=60"}),
              "is not shorter than the time limit"));
  for (const auto* lead : {"--trireme-signal-lead=auto", "--trireme-set=run.signal_lead=auto",
                           "--trireme-set=run.signal_lead=90s"}) {
    CHECK(holds(refusals(Command::sbatch, {"-t1", lead}), "is not shorter than the time limit"));
    CHECK(refusals(Command::sbatch, {"-t2", lead}).empty());
  }
  CHECK(
      holds(refusals(Command::sbatch, {"--micro-batch=3", "--trireme-set=train.global_batch=8"}),
            "train.global_batch = 8 (--trireme-set) is not a multiple of --micro-batch = 3 (a step "
            "is whole micro-batches); try 6 or 9"));
}

TEST_CASE("srun says what is missing and matters") {
  const Words words{"-n4", "--tensor-parallel=2", "x"};
  CHECK(holds(advices(Command::srun, words, {"none", ""}), "use --mpi=pmix"));
  CHECK_FALSE(holds(advices(Command::srun, words, {"pmix", ""}), "--mpi"));
  CHECK_FALSE(holds(advices(Command::srun, words), "--mpi"));
  CHECK(holds(advices(Command::srun, {"-n4", "--mpi=pmi2", "--trireme=on", "x"}, {"pmix", ""}),
              "--mpi=pmi2 is no PMIx"));
  CHECK(holds(advices(Command::srun, words), "--wait=10"));
  CHECK_FALSE(holds(advices(Command::srun, {"-K", "-n4", "--trireme=on", "x"}), "--wait"));
  CHECK_FALSE(holds(advices(Command::srun, {"-W", "5", "-n4", "--trireme=on", "x"}), "--wait"));
  CHECK(holds(advices(Command::srun, words, {"pmix", "4"}), "export SRUN_CPUS_PER_TASK=4"));
  CHECK_FALSE(holds(advices(Command::srun, {"-c4", "-n4", "--trireme=on", "x"}, {"pmix", "4"}),
                    "SRUN_CPUS"));
  CHECK(holds(advices(Command::srun, {"-n4", "--gpus-per-task=1", "--trireme=on", "x"}),
              "use --gpus-per-node alone"));
  CHECK(holds(advices(Command::sbatch, {"-N4", "--trireme=on", "x"}), "--no-kill"));
  CHECK_FALSE(holds(advices(Command::sbatch, {"-N4", "-k", "--trireme=on", "x"}), "--no-kill"));
  CHECK(holds(advices(Command::sbatch, {"-N2", "-n8", "--tensor-parallel=2", "x"}),
              "add --ntasks-per-node"));
  CHECK_FALSE(
      holds(advices(Command::sbatch, {"-N2", "--ntasks-per-node=4", "--tensor-parallel=2", "x"}),
            "--ntasks-per-node"));
  CHECK(advices(Command::srun, {"-Q", "-n4", "--trireme=on", "x"}, {"none", "4"}).empty());
  CHECK(advices(Command::srun, {"-n4", "x"}, {"none", "4"}).empty());
}

TEST_CASE("a time limit that the shortest lead of auto fills is said") {
  const auto advised = [](const Words& words) {
    return holds(advices(Command::sbatch, words), "would stop before its first step");
  };
  CHECK(advised({"-t1", "--trireme=on", "x"}));
  CHECK_FALSE(advised({"-t2", "--trireme=on", "x"}));
  CHECK_FALSE(advised({"-t1", "--trireme-signal-lead=5", "x"}));
  CHECK_FALSE(advised({"-t1", "--trireme-set=run.signal_lead=0", "x"}));
  CHECK_FALSE(advised({"-t1", "x"}));
}

TEST_CASE("little memory for a rank is said before Slurm kills it") {
  const auto advised = [](const Words& words) {
    const auto text = advices(Command::srun, words, {"pmix", ""});
    return holds(text, "MiB for each rank") ? text : std::string{};
  };
  CHECK(holds(advised({"-N2", "--ntasks-per-node=8", "--mem=4G", "--trireme=on", "x"}),
              "--mem=4096M leaves 512 MiB for each rank"));
  CHECK(advised({"-N2", "--ntasks-per-node=8", "--mem=8G", "--trireme=on", "x"}).empty());
  CHECK(holds(advised({"-n8", "-c2", "--mem-per-cpu=100", "--trireme=on", "x"}),
              "--mem-per-cpu=100M leaves 200 MiB"));
  CHECK(advised({"-n8", "-c16", "--mem-per-cpu=100", "--trireme=on", "x"}).empty());
  CHECK(holds(advised({"-N1", "-n4", "--gpus-per-node=2", "--mem-per-gpu=1G", "--trireme=on", "x"}),
              "--mem-per-gpu=1024M leaves 512 MiB"));
  // The later one counts, 0 is all of a node, and without a number of tasks nothing is known.
  CHECK(advised({"-n8", "--mem-per-cpu=100", "--mem=0", "--trireme=on", "x"}).empty());
  CHECK(advised({"-N2-4", "-n8", "--mem=1G", "--trireme=on", "x"}).empty());
  // A job that does not ask for Trireme hears nothing.
  CHECK(advised({"-n8", "--mem-per-cpu=100", "x"}).empty());
}
