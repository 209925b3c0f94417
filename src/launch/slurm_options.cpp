// SPDX-License-Identifier: Apache-2.0
#include "slurm_options.hpp"

#include "trireme/launch/options.hpp"

#include <algorithm>
#include <iterator>

namespace trireme::launch {
namespace {

enum class Value { none, optional, required };

struct SlurmOption {
  std::string_view name;
  Value value;
  char letter = '\0';
};

constexpr auto none = Value::none;
constexpr auto optional = Value::optional;
constexpr auto required = Value::required;

/// Options of srun, sbatch and salloc, by name.
constexpr SlurmOption slurm_options[] = {
    {"account", required, 'A'},
    {"acctg-freq", required},
    {"array", required, 'a'},
    {"batch", required},
    {"bb", required},
    {"bbf", required},
    {"bcast", optional},
    {"bcast-exclude", required},
    {"begin", required, 'b'},
    {"bell", none},
    {"chdir", required, 'D'},
    {"cluster-constraint", required},
    {"clusters", required, 'M'},
    {"comment", required},
    {"compress", optional},
    {"constraint", required, 'C'},
    {"container", required},
    {"container-id", required},
    {"contiguous", none},
    {"core-spec", required, 'S'},
    {"cores-per-socket", required},
    {"cpu-bind", required},
    {"cpu-freq", required},
    {"cpus-per-gpu", required},
    {"cpus-per-task", required, 'c'},
    {"deadline", required},
    {"debugger-test", none},
    {"delay-boot", required},
    {"dependency", required, 'd'},
    {"disable-status", none, 'X'},
    {"distribution", required, 'm'},
    {"epilog", required},
    {"error", required, 'e'},
    {"exact", none},
    {"exclude", required, 'x'},
    {"exclusive", optional},
    {"export", required},
    {"export-file", required},
    {"external", none},
    {"extra", required},
    {"extra-node-info", required, 'B'},
    {"get-user-env", optional},
    {"gid", required},
    {"gpu-bind", required},
    {"gpu-freq", required},
    {"gpus", required, 'G'},
    {"gpus-per-node", required},
    {"gpus-per-socket", required},
    {"gpus-per-task", required},
    {"gres", required},
    {"gres-flags", required},
    {"help", none, 'h'},
    {"het-group", required},
    {"hint", required},
    {"hold", none, 'H'},
    {"ignore-pbs", none},
    {"immediate", optional, 'I'},
    {"input", required, 'i'},
    {"job-name", required, 'J'},
    {"jobid", required},
    {"kill-command", optional},
    {"kill-on-bad-exit", optional, 'K'},
    {"label", none, 'l'},
    {"licenses", required, 'L'},
    {"mail-type", required},
    {"mail-user", required},
    {"max-exit-timeout", required},
    {"max-threads", required},
    {"mcs-label", required},
    {"mem", required},
    {"mem-bind", required},
    {"mem-per-cpu", required},
    {"mem-per-gpu", required},
    {"mincpus", required},
    {"mpi", required},
    {"msg-timeout", required},
    {"multi-prog", none},
    {"network", required},
    {"nice", optional},
    {"no-allocate", none, 'Z'},
    {"no-bell", none},
    {"no-kill", optional, 'k'},
    {"no-requeue", none},
    {"no-shell", none},
    {"nodefile", required, 'F'},
    {"nodelist", required, 'w'},
    {"nodes", required, 'N'},
    {"ntasks", required, 'n'},
    {"ntasks-per-core", required},
    {"ntasks-per-gpu", required},
    {"ntasks-per-node", required},
    {"ntasks-per-socket", required},
    {"ntasks-per-tres", required},
    {"open-mode", required},
    {"output", required, 'o'},
    {"overcommit", none, 'O'},
    {"overlap", optional},
    {"oversubscribe", none, 's'},
    {"parsable", none},
    {"partition", required, 'p'},
    {"power", required},
    {"prefer", required},
    {"preserve-env", none, 'E'},
    {"priority", required},
    {"profile", required},
    {"prolog", required},
    {"propagate", optional},
    {"pty", optional},
    {"qos", required, 'q'},
    {"quiet", none, 'Q'},
    {"quit-on-interrupt", none},
    {"reboot", none},
    {"relative", required, 'r'},
    {"requeue", none},
    {"reservation", required},
    {"resv-ports", optional},
    {"send-libs", optional},
    {"signal", required},
    {"slurmd-debug", required},
    {"sockets-per-node", required},
    {"spread-job", none},
    {"stepmgr", none},
    {"switches", required},
    {"task-epilog", required},
    {"task-prolog", required},
    {"test-only", none},
    {"thread-spec", required},
    {"threads", required, 'T'},
    {"threads-per-core", required},
    {"time", required, 't'},
    {"time-min", required},
    {"tmp", required},
    {"tres-bind", required},
    {"tres-per-job", required},
    {"tres-per-node", required},
    {"tres-per-task", required},
    {"uid", required},
    {"unbuffered", none, 'u'},
    {"usage", none},
    {"use-min-nodes", none},
    {"verbose", none, 'v'},
    {"version", none, 'V'},
    {"wait-all-nodes", required},
    {"wait-for-children", none},
    {"wckey", required},
    {"wrap", required},
};

std::vector<SlurmOption> options_of(Command command) {
  std::vector<SlurmOption> all(std::begin(slurm_options), std::end(slurm_options));
  // Only option whose kind depends on the command: seconds for srun, a flag for sbatch.
  all.push_back({"wait", command == Command::srun ? required : none, 'W'});
  for (const auto& option : options()) all.push_back({option.name, required});
  return all;
}

class Reader {
 public:
  Reader(Command command, std::span<const std::string> words)
      : known_(options_of(command)), words_(words) {}

  OptionWords read() {
    while (at_ < words_.size() && found_.complete) {
      const std::string& word = words_[at_++];
      if (word == "--") {
        if (at_ < words_.size()) found_.program = words_[at_];
        break;
      }
      if (word.size() < 2 || word.front() != '-') {
        // A lone ':' divides the components of a heterogeneous job, which have options of their
        // own.
        found_.heterogeneous = found_.heterogeneous || word == ":";
        found_.program = word;
        break;
      }
      if (word[1] == '-') {
        read_long(std::string_view(word).substr(2));
      } else {
        read_letters(std::string_view(word).substr(1));
      }
    }
    for (const auto& word : words_.subspan(std::min(at_, words_.size()))) {
      found_.heterogeneous = found_.heterogeneous || word == ":";
    }
    return std::move(found_);
  }

 private:
  void read_long(std::string_view text) {
    const auto equals = text.find('=');
    const auto* option = find_long(text.substr(0, equals));
    const auto written = std::string(text.substr(0, equals));
    if (equals != std::string_view::npos) {
      add(option == nullptr ? written : option->name, text.substr(equals + 1));
    } else if (option == nullptr) {
      // Option of another plugin: the next word is its value or the command.
      found_.complete = at_ < words_.size() && words_[at_].starts_with("-");
    } else if (option->value == Value::required) {
      take_next(option->name);
    } else {
      add(option->name, "");
    }
  }

  /// A cluster such as -Kn8: letters without values, then one with its value.
  void read_letters(std::string_view text) {
    while (!text.empty()) {
      const auto* option = find_letter(text.front());
      text.remove_prefix(1);
      if (option == nullptr) {
        found_.complete = false;
        return;
      }
      if (option->value == Value::none) {
        add(option->name, "");
        continue;
      }
      if (option->value == Value::required && text.empty()) {
        take_next(option->name);
      } else {
        add(option->name, text);
      }
      return;
    }
  }

  void take_next(std::string_view name) {
    if (at_ == words_.size()) {
      found_.complete = false;
      return;
    }
    add(name, words_[at_++]);
  }

  /// Exact match, or the only option with this prefix, as in getopt_long.
  const SlurmOption* find_long(std::string_view name) const {
    const SlurmOption* only = nullptr;
    for (const auto& option : known_) {
      if (option.name == name) return &option;
      if (!option.name.starts_with(name)) continue;
      if (only != nullptr) return nullptr;
      only = &option;
    }
    return only;
  }

  const SlurmOption* find_letter(char letter) const {
    const auto found = std::find_if(known_.begin(), known_.end(), [&](const SlurmOption& option) {
      return option.letter == letter;
    });
    return found == known_.end() ? nullptr : &*found;
  }

  void add(std::string_view name, std::string_view value) {
    found_.options.push_back({std::string(name), std::string(value)});
  }

  std::vector<SlurmOption> known_;
  std::span<const std::string> words_;
  std::size_t at_ = 0;
  OptionWords found_;
};

}  // namespace

OptionWords read_options(Command command, std::span<const std::string> words) {
  return Reader(command, words).read();
}

}  // namespace trireme::launch
