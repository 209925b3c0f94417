// SPDX-License-Identifier: Apache-2.0
// Lines of ranks' logs and answers of sacct, which trireme why reads.
#include "trireme/postmortem/postmortem.hpp"

#include "input.hpp"

using namespace trireme;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  if (const auto line = postmortem::parse_log_line(text); line.ok()) {
    fuzz::must(line->rank >= 0, "ranks are counted from 0");
    fuzz::must(!postmortem::utc_text(line->time_ms).empty(), "its time can be shown");
  }
  postmortem::parse_sacct(text);
  return 0;
}
