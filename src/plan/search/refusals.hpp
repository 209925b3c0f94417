// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/plan/search.hpp"

#include "searcher.hpp"

#include <optional>

/// Searches that are not made, or find nothing. Private to the room.
namespace trireme::plan {

/// Refuses what a search cannot do without, or cannot compare.
base::Status check_search(const config::Config& config, const predict::Machine& machine,
                          const SearchRequest& request);

/// Why no layout is found, by the one that needs little memory, if any is legal, and by one that
/// fits on more ranks.
base::Failure none_fits(const std::optional<Misfit>& smallest,
                        const std::optional<LayoutChoice>& on_more, const predict::Machine& machine,
                        const SearchRequest& request);

}  // namespace trireme::plan
