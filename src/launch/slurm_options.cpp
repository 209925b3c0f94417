// SPDX-License-Identifier: Apache-2.0
#include "slurm_options.hpp"

#include "trireme/launch/options.hpp"

#include <algorithm>
#include <array>

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

/// Options of Slurm that take no value, or an optional one: all others require one.
constexpr std::array valueless{
    SlurmOption{"bell", none},
    SlurmOption{"compress", optional},
    SlurmOption{"contiguous", none},
    SlurmOption{"disable-status", none, 'X'},
    SlurmOption{"exact", none},
    SlurmOption{"exclusive", optional},
    SlurmOption{"external", none},
    SlurmOption{"get-user-env", optional},
    SlurmOption{"help", none, 'h'},
    SlurmOption{"hold", none, 'H'},
    SlurmOption{"ignore-pbs", none},
    SlurmOption{"immediate", optional, 'I'},
    SlurmOption{"kill-command", optional},
    SlurmOption{"kill-on-bad-exit", optional, 'K'},
    SlurmOption{"label", none, 'l'},
    SlurmOption{"multi-prog", none},
    SlurmOption{"nice", optional},
    SlurmOption{"no-allocate", none, 'Z'},
    SlurmOption{"no-bell", none},
    SlurmOption{"no-kill", optional, 'k'},
    SlurmOption{"no-requeue", none},
    SlurmOption{"no-shell", none},
    SlurmOption{"overcommit", none, 'O'},
    SlurmOption{"overlap", optional},
    SlurmOption{"oversubscribe", none, 's'},
    SlurmOption{"parsable", none},
    SlurmOption{"preserve-env", none, 'E'},
    SlurmOption{"propagate", optional},
    SlurmOption{"pty", optional},
    SlurmOption{"quiet", none, 'Q'},
    SlurmOption{"quit-on-interrupt", none},
    SlurmOption{"reboot", none},
    SlurmOption{"requeue", none},
    SlurmOption{"resv-ports", optional},
    SlurmOption{"send-libs", optional},
    SlurmOption{"spread-job", none},
    SlurmOption{"stepmgr", none},
    SlurmOption{"test-only", none},
    SlurmOption{"unbuffered", none, 'u'},
    SlurmOption{"usage", none},
    SlurmOption{"use-min-nodes", none},
    SlurmOption{"verbose", none, 'v'},
    SlurmOption{"version", none, 'V'},
};

constexpr std::array valued{SlurmOption{"account", required, 'A'},
                            SlurmOption{"acctg-freq", required},
                            SlurmOption{"array", required, 'a'},
                            SlurmOption{"batch", required},
                            SlurmOption{"bb", required},
                            SlurmOption{"bbf", required},
                            SlurmOption{"bcast", optional},
                            SlurmOption{"bcast-exclude", required},
                            SlurmOption{"begin", required, 'b'},
                            SlurmOption{"chdir", required, 'D'},
                            SlurmOption{"cluster-constraint", required},
                            SlurmOption{"clusters", required, 'M'},
                            SlurmOption{"comment", required},
                            SlurmOption{"constraint", required, 'C'},
                            SlurmOption{"container", required},
                            SlurmOption{"container-id", required},
                            SlurmOption{"core-spec", required, 'S'},
                            SlurmOption{"cores-per-socket", required},
                            SlurmOption{"cpu-bind", required},
                            SlurmOption{"cpu-freq", required},
                            SlurmOption{"cpus-per-gpu", required},
                            SlurmOption{"cpus-per-task", required, 'c'},
                            SlurmOption{"deadline", required},
                            SlurmOption{"debugger-test", none},
                            SlurmOption{"delay-boot", required},
                            SlurmOption{"dependency", required, 'd'},
                            SlurmOption{"distribution", required, 'm'},
                            SlurmOption{"epilog", required},
                            SlurmOption{"error", required, 'e'},
                            SlurmOption{"exclude", required, 'x'},
                            SlurmOption{"export", required},
                            SlurmOption{"export-file", required},
                            SlurmOption{"extra", required},
                            SlurmOption{"extra-node-info", required, 'B'},
                            SlurmOption{"gid", required},
                            SlurmOption{"gpu-bind", required},
                            SlurmOption{"gpu-freq", required},
                            SlurmOption{"gpus", required, 'G'},
                            SlurmOption{"gpus-per-node", required},
                            SlurmOption{"gpus-per-socket", required},
                            SlurmOption{"gpus-per-task", required},
                            SlurmOption{"gres", required},
                            SlurmOption{"gres-flags", required},
                            SlurmOption{"het-group", required},
                            SlurmOption{"hint", required},
                            SlurmOption{"input", required, 'i'},
                            SlurmOption{"jobid", required},
                            SlurmOption{"job-name", required, 'J'},
                            SlurmOption{"licenses", required, 'L'},
                            SlurmOption{"mail-type", required},
                            SlurmOption{"mail-user", required},
                            SlurmOption{"max-exit-timeout", required},
                            SlurmOption{"max-threads", required},
                            SlurmOption{"mcs-label", required},
                            SlurmOption{"mem", required},
                            SlurmOption{"mem-bind", required},
                            SlurmOption{"mem-per-cpu", required},
                            SlurmOption{"mem-per-gpu", required},
                            SlurmOption{"mincpus", required},
                            SlurmOption{"mpi", required},
                            SlurmOption{"msg-timeout", required},
                            SlurmOption{"network", required},
                            SlurmOption{"nodefile", required, 'F'},
                            SlurmOption{"nodelist", required, 'w'},
                            SlurmOption{"nodes", required, 'N'},
                            SlurmOption{"ntasks", required, 'n'},
                            SlurmOption{"ntasks-per-core", required},
                            SlurmOption{"ntasks-per-gpu", required},
                            SlurmOption{"ntasks-per-node", required},
                            SlurmOption{"ntasks-per-socket", required},
                            SlurmOption{"ntasks-per-tres", required},
                            SlurmOption{"open-mode", required},
                            SlurmOption{"output", required, 'o'},
                            SlurmOption{"partition", required, 'p'},
                            SlurmOption{"power", required},
                            SlurmOption{"prefer", required},
                            SlurmOption{"priority", required},
                            SlurmOption{"profile", required},
                            SlurmOption{"prolog", required},
                            SlurmOption{"qos", required, 'q'},
                            SlurmOption{"relative", required, 'r'},
                            SlurmOption{"reservation", required},
                            SlurmOption{"signal", required},
                            SlurmOption{"slurmd-debug", required},
                            SlurmOption{"sockets-per-node", required},
                            SlurmOption{"switches", required},
                            SlurmOption{"task-epilog", required},
                            SlurmOption{"task-prolog", required},
                            SlurmOption{"thread-spec", required},
                            SlurmOption{"threads", required, 'T'},
                            SlurmOption{"threads-per-core", required},
                            SlurmOption{"time", required, 't'},
                            SlurmOption{"time-min", required},
                            SlurmOption{"tmp", required},
                            SlurmOption{"tres-bind", required},
                            SlurmOption{"tres-per-job", required},
                            SlurmOption{"tres-per-node", required},
                            SlurmOption{"tres-per-task", required},
                            SlurmOption{"uid", required},
                            SlurmOption{"wait-all-nodes", required},
                            SlurmOption{"wait-for-children", none},
                            SlurmOption{"wckey", required},
                            SlurmOption{"wrap", required}};

std::vector<SlurmOption> options_of(Command command) {
  std::vector<SlurmOption> all(valueless.begin(), valueless.end());
  all.insert(all.end(), valued.begin(), valued.end());
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
