// SPDX-License-Identifier: Apache-2.0
// SLURM_TRIREME: one text for one contract.
#include "trireme/launch/contract.hpp"

#include "trireme/launch/validation.hpp"

#include "input.hpp"

using namespace trireme;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  const auto contract = launch::decode(text);
  if (!contract) return 0;
  const auto written = launch::encode(*contract);
  const auto again = launch::decode(written);
  fuzz::must(again.ok() && *again == *contract, "what is written is read as the same contract");
  fuzz::must(launch::encode(*again) == written, "and written as the same text");
  launch::variables(*contract);
  launch::validate(*contract, {});
  return 0;
}
