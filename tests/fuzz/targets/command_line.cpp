// SPDX-License-Identifier: Apache-2.0
// A command line of Slurm with its environment, batch script and contract, and the judgement of it.
// Parts are divided by lines "--": environment, script, words of the command, encoded.
#include "trireme/launch/resource_request.hpp"
#include "trireme/launch/validation.hpp"

#include "input.hpp"

using namespace trireme;

namespace {

void check_counts(const launch::ResourceRequest& request) {
  for (const auto count : {launch::task_count(request), launch::tasks_on_a_node(request),
                           launch::gpus_on_a_node(request)}) {
    fuzz::must(!count || *count >= 0, "a count is not negative");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  auto text = fuzz::text_of(data, size);
  const auto environment = fuzz::environment_of(fuzz::take_part(text));
  const auto script = launch::batch_words(fuzz::take_part(text));
  const auto arguments = fuzz::lines_of(fuzz::take_part(text));
  const auto contract = launch::decode(text);
  for (const auto command :
       {launch::Command::srun, launch::Command::sbatch, launch::Command::salloc}) {
    const auto request = launch::read_resource_request(command, environment, script, arguments);
    check_counts(request);
    if (!contract) continue;
    for (const auto& mistake : launch::validate(*contract, request)) {
      fuzz::must(mistake.find("; ") != std::string::npos, "a refusal says what to do");
    }
    launch::advice(*contract, request, {"none", "4"});
  }
  for (const auto& word : arguments) launch::parse_slurm_time(word);
  return 0;
}
