// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"
#include "trireme/runtime/cluster.hpp"

namespace trireme::inference {

/// The process groups that an engine needs of a cluster.
inline engine::Groups groups_of(const runtime::Cluster& cluster) {
  return {cluster.tp.get(), cluster.pp.get(), cluster.dp.get(), cluster.embedding.get()};
}

}  // namespace trireme::inference
