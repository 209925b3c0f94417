// SPDX-License-Identifier: Apache-2.0
// Lines of a node's record of tasks.
#include "trireme/record/task_record.hpp"

#include "input.hpp"

using namespace trireme;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  const auto record = record::parse_record(text);
  if (!record) return 0;
  fuzz::must(record::record_line(*record) == text, "a line that is read is a line that is written");
  fuzz::must(!(record->exit_code() && record->signal()), "a task ends by a code or by a signal");
  record::cause_text(*record);
  return 0;
}
