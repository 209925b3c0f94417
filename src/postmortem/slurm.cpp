// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/launch/slurm_command.hpp"
#include "trireme/postmortem/postmortem.hpp"

#include <algorithm>

namespace trireme::postmortem {
namespace {

constexpr std::chrono::seconds patience{5};

std::string first_line(std::string_view text) {
  const auto begin = std::min(text.size(), text.find_first_not_of(" \n"));
  text.remove_prefix(begin);
  return std::string(text.substr(0, text.find('\n')));
}

/// Value of a word "JobState=FAILED" of scontrol show job.
std::string word_of(std::string_view text, std::string_view name) {
  const auto begin = text.find(name);
  if (begin == std::string_view::npos) return {};
  const auto value = text.substr(begin + name.size());
  return std::string(value.substr(0, value.find_first_of(" \n")));
}

SlurmView ask_scontrol(const std::string& number) {
  const std::string words[] = {"scontrol", "show", "job", number};
  const auto answer = launch::run_slurm_command(words, patience);
  if (!answer || answer->exit_code != 0) return {};
  SlurmView view;
  view.state = word_of(answer->output, "JobState=");
  view.detail =
      base::format("exit code {}, reason {}, nodes {}", word_of(answer->output, "ExitCode="),
                   word_of(answer->output, "Reason="), word_of(answer->output, " NodeList="));
  return view;
}

}  // namespace

SlurmView parse_sacct(std::string_view answer) {
  // JobID|State|ExitCode|NodeList, the job itself first, then its steps.
  const auto line = first_line(answer);
  std::vector<std::string> fields;
  for (std::string_view rest = line;;) {
    const auto end = rest.find('|');
    fields.emplace_back(rest.substr(0, end));
    if (end == std::string_view::npos) break;
    rest.remove_prefix(end + 1);
  }
  if (fields.size() != 4 || fields[1].empty()) return {};
  SlurmView view;
  // "CANCELLED by 1000"
  view.state = fields[1].substr(0, fields[1].find(' '));
  view.detail = base::format("{}, exit code {}, nodes {}", fields[1], fields[2], fields[3]);
  return view;
}

SlurmView ask_slurm(const std::string& job) {
  const auto number = job.substr(0, job.find('.'));
  if (number.empty() || number.find_first_not_of("0123456789") != std::string::npos) return {};
  const std::string words[] = {"sacct", "--noheader", "--parsable2", "--jobs=" + number,
                               "--format=JobID,State,ExitCode,NodeList"};
  if (const auto answer = launch::run_slurm_command(words, patience);
      answer && answer->exit_code == 0) {
    if (auto view = parse_sacct(answer->output); !view.state.empty()) return view;
  }
  return ask_scontrol(number);
}

}  // namespace trireme::postmortem
