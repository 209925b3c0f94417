// SPDX-License-Identifier: Apache-2.0
#include "comm/nccl/diagnostics/diagnostics.hpp"

#include "comm/nccl/diagnostics/ras.hpp"

namespace trireme::comm::nccl {
namespace {

/// First version of NCCL with a RAS.
constexpr int first_with_ras = 22400;

}  // namespace

std::vector<std::string> Diagnostics::collect() const {
  std::vector<std::string> lines;
  if (log_ != nullptr) {
    if (const auto text = log_->text(); text.ok()) {
      for (const auto& warning : warnings_of_nccl_log(*text)) {
        lines.push_back("NCCL warned: " + warning);
      }
    }
  }
  if (ras_address_.empty() || version_ < first_with_ras) return lines;
  const auto answer = ask_ras({ras_address_});
  if (!answer.ok()) {
    lines.push_back(answer.failure().text);
    return lines;
  }
  for (auto& finding : findings_of_ras(*answer, processes_)) lines.push_back(std::move(finding));
  return lines;
}

}  // namespace trireme::comm::nccl
