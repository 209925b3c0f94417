// A command line of Slurm with its environment, batch script and contract, and the judgement of it.
// Parts are divided by lines "--": environment, script, words of the command, encoded.
#include "trireme/launch/check.hpp"
#include "trireme/launch/geometry.hpp"

#include "input.hpp"

using namespace trireme;

namespace {

void check_counts(const launch::Geometry& geometry) {
  for (const auto count : {launch::task_count(geometry), launch::tasks_on_a_node(geometry),
                           launch::gpus_on_a_node(geometry)}) {
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
    const auto geometry = launch::read_geometry(command, environment, script, arguments);
    check_counts(geometry);
    if (!contract) continue;
    for (const auto& mistake : launch::impossibilities(*contract, geometry)) {
      fuzz::must(mistake.find("; ") != std::string::npos, "a refusal says what to do");
    }
    launch::advice(*contract, geometry, {"none", "4"});
  }
  for (const auto& word : arguments) launch::parse_slurm_time(word);
  return 0;
}
