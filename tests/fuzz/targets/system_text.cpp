// SPDX-License-Identifier: Apache-2.0
// slurm.conf, /proc/self/cgroup, counters of the kernel, Slurm's times.
#include "trireme/launch/system_text.hpp"

#include "trireme/launch/resource_request.hpp"
#include "trireme/record/task_record.hpp"

#include "input.hpp"

using namespace trireme;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  const auto mpi = launch::default_mpi_in(text);
  fuzz::must(mpi.find('\n') == std::string::npos, "MpiDefault is one word");
  if (const auto counter = launch::kill_counter_in(text)) {
    fuzz::must(counter->starts_with("/sys/fs/cgroup"), "counters lie below /sys/fs/cgroup");
    fuzz::must(counter->find('\n') == std::string::npos, "a path is one line");
  }
  if (const auto kills = record::memory_kills_in(text))
    fuzz::must(*kills >= 0, "kills are counted");
  if (const auto seconds = launch::parse_slurm_time(text)) {
    fuzz::must(*seconds >= 0, "no time limit is negative");
  }
  return 0;
}
