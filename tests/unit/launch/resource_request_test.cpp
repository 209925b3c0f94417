// SPDX-License-Identifier: Apache-2.0
#include "trireme/launch/resource_request.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace trireme;
using launch::batch_words;
using launch::Command;
using launch::ResourceRequest;

namespace {

using Words = std::vector<std::string>;

ResourceRequest from(Command command, const Words& arguments, const Words& script = {},
                     std::map<std::string, std::string, std::less<>> variables = {}) {
  return launch::read_resource_request(command, base::Environment(std::move(variables)), script,
                                       arguments);
}

}  // namespace

TEST_CASE("options are read in all the ways that getopt_long takes them") {
  for (const Words& words :
       {Words{"-N4", "-n8", "prog"}, Words{"-N", "4", "-n", "8", "prog"},
        Words{"--nodes=4", "--ntasks", "8", "prog"}, Words{"-lun8", "--nodes", "4", "prog"},
        Words{"--nodes=4", "--ntasks=8", "--kill-on=0", "prog"},
        Words{"-N4-4", "-n8", "--", "prog"},
        Words{"--exclusive", "-I", "-N4", "--overlap", "--nice", "-n8", "prog", "-n", "3"},
        Words{"--container-image=x.sqsh", "-N4", "-n8", "prog"},
        Words{"-n8", "-N4", "--tensor-parallel", "2", "prog"}}) {
    CAPTURE(words);
    const auto request = from(Command::srun, words);
    CHECK(request.nodes == 4);
    CHECK(task_count(request) == 8);
    CHECK(tasks_on_a_node(request) == 2);
    CHECK(request.program == "prog");
    CHECK(request.complete);
  }
}

TEST_CASE("an option that nobody knows leaves open what follows") {
  const auto request = from(Command::srun, {"--unheard-of", "x", "-n8", "prog"});
  CHECK_FALSE(request.complete);
  CHECK_FALSE(task_count(request));
  CHECK(from(Command::srun, {"--unheard-of", "-n8", "prog"}).complete);
}

TEST_CASE("srun starts one task a node, and sbatch leaves it to its script") {
  CHECK(task_count(from(Command::srun, {"-N3", "prog"})) == 3);
  CHECK(task_count(from(Command::srun, {"prog"})) == 1);
  CHECK_FALSE(task_count(from(Command::sbatch, {"-N3", "job.sh"})));
  CHECK_FALSE(task_count(from(Command::srun, {"-N3", "a", ":", "-n2", "b"})));
}

TEST_CASE("sizes that are ranges are not known") {
  CHECK_FALSE(from(Command::sbatch, {"-N2-4"}).nodes);
  CHECK_FALSE(from(Command::sbatch, {"-N", "huge"}).nodes);
  CHECK_FALSE(tasks_on_a_node(from(Command::sbatch, {"-N3", "-n8"})));
}

TEST_CASE("tasks follow from tasks per node and from GPUs") {
  CHECK(task_count(from(Command::sbatch, {"-N2", "--ntasks-per-node=4"})) == 8);
  CHECK(task_count(from(Command::srun, {"--ntasks-per-gpu=1", "--gpus=6", "prog"})) == 6);
  CHECK(task_count(from(Command::sbatch, {"--gpus-per-task=2", "--gpus=8"})) == 4);
  CHECK(tasks_on_a_node(from(Command::sbatch, {"-n2", "--ntasks-per-node=4"})) == 2);
}

TEST_CASE("GPUs are counted in every spelling") {
  CHECK(gpus_on_a_node(from(Command::sbatch, {"--gpus-per-node=8"})) == 8);
  CHECK(gpus_on_a_node(from(Command::sbatch, {"--gpus-per-node=a100:4,v100:2"})) == 6);
  CHECK(gpus_on_a_node(from(Command::sbatch, {"--gres=nvme:1,gpu:h100:4"})) == 4);
  CHECK(gpus_on_a_node(from(Command::sbatch, {"--gres=gpu"})) == 1);
  CHECK(gpus_on_a_node(from(Command::sbatch, {"-G16", "-N2"})) == 8);
  CHECK_FALSE(gpus_on_a_node(from(Command::sbatch, {"--gres=nvme:2"})));
  CHECK_FALSE(gpus_on_a_node(from(Command::sbatch, {"--gpus-per-node=many"})));
}

TEST_CASE("a batch script speaks until its first command") {
  const auto words = batch_words(
      "#!/bin/bash\n#SBATCH -N 4 --ntasks-per-node=2  # eight\n\n# talk\n"
      "#SBATCH --job-name=\"a b\" --comment=it\\'s\n#SBATCHED -n 3\nsrun x\n#SBATCH -n 99\n");
  CHECK(words == Words{"-N", "4", "--ntasks-per-node=2", "--job-name=a b", "--comment=it's"});
  CHECK(batch_words("").empty());
  CHECK(batch_words("#!/bin/bash\n#SBATCH -N 1\n#SBATCH hetjob\n#SBATCH -N 2\n") ==
        Words{"-N", "1", ":", "-N", "2"});
}

TEST_CASE("the command line wins over the script, and the script over the environment") {
  const auto request =
      from(Command::sbatch, {"-n8", "job.sh"}, {"-N", "2", "-n4"}, {{"SBATCH_GPUS_PER_NODE", "4"}});
  CHECK(request.tasks == 8);
  CHECK(request.nodes == 2);
  CHECK(request.gpus_per_node == 4);
  CHECK(request.program == "job.sh");
  CHECK_FALSE(task_count(from(Command::sbatch, {"job.sh"}, {"-n4", ":", "-n2"})));
}

TEST_CASE("a step takes its size from the job where it says none") {
  const std::map<std::string, std::string, std::less<>> job{{"SLURM_JOB_ID", "7"},
                                                            {"SLURM_NNODES", "4"},
                                                            {"SLURM_NTASKS", "8"},
                                                            {"SLURM_NTASKS_PER_NODE", "2"}};
  const auto whole = from(Command::srun, {"prog"}, {}, job);
  CHECK(whole.in_allocation);
  CHECK(task_count(whole) == 8);
  const auto part = from(Command::srun, {"-N1", "-n1", "prog"}, {}, job);
  CHECK(task_count(part) == 1);
  CHECK(tasks_on_a_node(part) == 1);
  CHECK(task_count(from(Command::srun, {"--ntasks-per-node=4", "prog"}, {}, job)) == 16);
  // sbatch from inside of a job submits another job.
  CHECK_FALSE(from(Command::sbatch, {"job.sh"}, {}, job).in_allocation);
}

TEST_CASE("Slurm's times are seconds") {
  CHECK(launch::parse_slurm_time("90") == 5400);
  CHECK(launch::parse_slurm_time("1:30") == 90);
  CHECK(launch::parse_slurm_time("1:30:05") == 5405);
  CHECK(launch::parse_slurm_time("2-12") == 216'000);
  CHECK(launch::parse_slurm_time("1-0:30") == 88'200);
  for (const char* text : {"", "UNLIMITED", "1:2:3:4", "-", "1-", "a", "99999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(launch::parse_slurm_time(text));
  }
}

TEST_CASE("sizes of memory are read as Slurm reads them") {
  CHECK(launch::parse_slurm_memory("4096") == 4096);
  CHECK(launch::parse_slurm_memory("4G") == 4096);
  CHECK(launch::parse_slurm_memory("4gb") == 4096);
  CHECK(launch::parse_slurm_memory("2T") == std::int64_t{2} << 20);
  CHECK(launch::parse_slurm_memory("2147483647T") == std::int64_t{2147483647} << 20);
  CHECK(launch::parse_slurm_memory("1025K") == 2);
  CHECK(launch::parse_slurm_memory("0") == 0);
  for (const auto* text : {"", "B", "G", "4X", "-4", "4.5G", "99999999999G", "4GG"}) {
    CAPTURE(text);
    CHECK_FALSE(launch::parse_slurm_memory(text));
  }
}
