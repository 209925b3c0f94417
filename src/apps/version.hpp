#pragma once

#include <string>

namespace trireme::apps {

/// What --version prints: version, commit, and each part that a build may have or lack, with its
/// version or the reason why it is absent.
std::string version_text();

}  // namespace trireme::apps
