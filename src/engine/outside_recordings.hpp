#pragma once

#include "trireme/comm/process_group.hpp"

#include "recorded_sections.hpp"

#include <memory>

namespace trireme::engine {

/// The same group, whose operations stand between recordings while a part is recorded: started and
/// joined whenever the part is issued, in the order of all others, with a number, a deadline and
/// peers to name as ever. Whoever starts one in a part must therefore join it before anything else,
/// and finds a Work that is done. The inner group outlives it.
std::unique_ptr<comm::ProcessGroup> outside_recordings(comm::ProcessGroup& inner,
                                                       RecordedSections& sections);

}  // namespace trireme::engine
