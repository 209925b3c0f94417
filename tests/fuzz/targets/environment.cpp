// SPDX-License-Identifier: Apache-2.0
// The environment of a task: contract, identity, place on the node, switches above it.
#include "trireme/launch/contract.hpp"
#include "trireme/layout/mesh.hpp"
#include "trireme/layout/rank_order.hpp"
#include "trireme/runtime/identity.hpp"
#include "trireme/runtime/launcher_environment.hpp"
#include "trireme/runtime/rank_order.hpp"

#include "input.hpp"

using namespace trireme;

namespace {

void check_contract(const base::Environment& environment) {
  for (const auto inherit : {launch::Inherit::yes, launch::Inherit::no}) {
    const auto contract = launch::read_contract(environment, inherit);
    if (!contract) continue;
    const auto again = launch::decode(launch::encode(*contract));
    fuzz::must(again.ok() && *again == *contract, "a contract survives being handed on");
  }
  launch::plugin_is_absent_here(environment);
}

void check_place(const base::Environment& environment) {
  if (const auto share = runtime::announced_share(environment)) {
    fuzz::must(share->local_rank >= 0 && share->local_rank < share->local_ranks,
               "a task is one of its node's");
  }
  if (const auto identity = runtime::identify(environment); identity.ok()) {
    runtime::check_world(*identity, 1);
  }
  const auto above = runtime::switches_above(environment);
  if (above.size() > 8) return;
  // Two processes on this node, one beside it, one elsewhere.
  auto here = above;
  here.push_back("here");
  auto beside = above;
  beside.push_back("beside");
  const std::vector<layout::NetworkPath> paths{here, beside, here, {"elsewhere"}};
  const auto mesh = layout::Mesh::of(1, 2, 2);
  const auto order = layout::order_ranks(mesh, paths);
  std::vector<int> seen(paths.size(), 0);
  for (const int process : order.launched) ++seen.at(static_cast<std::size_t>(process));
  fuzz::must(seen == std::vector<int>(paths.size(), 1), "every process becomes one rank");
  fuzz::must(order.cost <= order.as_launched, "an order costs no more than the launcher's");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto environment = fuzz::environment_of(fuzz::text_of(data, size));
  check_contract(environment);
  check_place(environment);
  return 0;
}
