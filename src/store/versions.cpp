// SPDX-License-Identifier: Apache-2.0
#include "trireme/store/object_store.hpp"

#include <pugixml.hpp>

namespace trireme::store {

std::vector<base::LibraryVersion> library_versions() {
  constexpr int version = PUGIXML_VERSION;
  return {{"pugixml", std::to_string(version / 1000) + "." + std::to_string(version / 10 % 100)}};
}

}  // namespace trireme::store
