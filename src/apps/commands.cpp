#include "apps/commands.hpp"

namespace trireme::apps {

std::vector<Command> commands() {
  return {
      tokenizer_command(),
      data_command(),
      config_command(),
      topology_command(),
      completion_command(),
      man_command(),
  };
}

}  // namespace trireme::apps
