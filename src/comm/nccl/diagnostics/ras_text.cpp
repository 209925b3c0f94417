// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/base/number.hpp"

#include "comm/nccl/diagnostics/ras.hpp"

#include <algorithm>

namespace trireme::comm::nccl {
namespace {

using std::string_view;

constexpr std::size_t most_findings = 24;
constexpr std::size_t longest_finding = 200;

std::vector<string_view> words_of(string_view line) {
  std::vector<string_view> words;
  while (words.size() < 8) {
    const auto begin = line.find_first_not_of(' ');
    if (begin == string_view::npos) break;
    line.remove_prefix(begin);
    const auto end = std::min(line.find(' '), line.size());
    words.push_back(line.substr(0, end));
    line.remove_prefix(end);
  }
  return words;
}

/// The number of processes in a row of the summary: nodes, processes per node, GPUs per process,
/// processes, GPUs; or nodes, processes, GPUs where nodes differ.
int processes_in(string_view line) {
  const auto words = words_of(line);
  if (words.size() != 5 && words.size() != 3) return 0;
  int processes = 0;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const auto number = base::number_in<int>(words[i]);
    if (!number) return 0;
    if (i == (words.size() == 5 ? 3U : 1U)) processes = *number;
  }
  return processes;
}

bool is_heading(string_view line) {
  return line == "Errors" || line == "Warnings" || line.find_first_not_of('=') == string_view::npos;
}

/// Untrusted text reduced to characters that a terminal can show.
std::string shown(string_view line) {
  std::string text(line.substr(0, longest_finding));
  for (auto& letter : text) {
    const auto code = static_cast<unsigned char>(letter);
    if (code < ' ' || code > '~') letter = '?';
  }
  return text;
}

}  // namespace

std::vector<std::string> findings_of_ras(string_view answer, int processes) {
  std::vector<std::string> findings;
  int told_processes = 0;
  bool in_findings = false;
  while (!answer.empty()) {
    const auto end = std::min(answer.find('\n'), answer.size());
    auto line = answer.substr(0, end);
    answer.remove_prefix(std::min(end + 1, answer.size()));
    const auto begin = line.find_first_not_of(" \r");
    if (begin == string_view::npos) continue;
    line = line.substr(begin, line.find_last_not_of(" \r") - begin + 1);
    if (!in_findings) {
      // The last row is that of all nodes.
      if (const int told = processes_in(line); told > 0) told_processes = told;
      if (line.starts_with("Communicators") && told_processes != 0 && told_processes != processes) {
        return {
            base::format("RAS speaks of {} processes, and this job has {}: it is another "
                         "job's",
                         told_processes, processes)};
      }
      in_findings = line == "Errors";
      continue;
    }
    if (is_heading(line)) continue;
    if (findings.size() == most_findings) {
      findings.emplace_back("RAS says more than is kept here");
      return findings;
    }
    findings.push_back("RAS: " + shown(line));
  }
  if (!in_findings) return {"RAS did not come to its findings in time"};
  if (findings.empty()) return {"RAS finds no error, and ranks that do not differ"};
  return findings;
}

}  // namespace trireme::comm::nccl
