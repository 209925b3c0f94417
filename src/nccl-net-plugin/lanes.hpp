// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme::nccl_net {

/// Transports and devices that carry an endpoint's data, "rc_mlx5/mlx5_0:1", in the order of their
/// lanes and each once; parsed from the output of ucp_ep_print_info, because UCX 1.13 has no query
/// for it. Empty where the text lists no lanes.
std::vector<std::string> lanes_of(std::string_view endpoint_info);

}  // namespace trireme::nccl_net
