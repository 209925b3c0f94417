// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/postmortem/postmortem.hpp"

#include <algorithm>

namespace trireme::postmortem {
namespace {

using base::format;

constexpr std::size_t most_shown = 40;

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  // Untrusted text: control characters must not reach a terminal.
  for (auto& letter : text) {
    if (static_cast<unsigned char>(letter) < ' ' || letter == '\x7f') letter = '?';
  }
  return text;
}

std::string row(std::string_view title, const std::string& text) {
  return format("{:<12} {}\n", title, one_line(text));
}

std::string who(const FirstCause& cause) {
  std::string text = cause.rank ? format("rank {}", *cause.rank) : std::string("a task");
  if (cause.task && cause.task != cause.rank) text += format(" (task {})", *cause.task);
  return text + (cause.host.empty() ? "" : " on " + cause.host);
}

/// "+1.250 s" after the first cause; its time of day where that is not known.
std::string when(const Postmortem& postmortem, std::int64_t time_ms) {
  if (!postmortem.cause || postmortem.cause->time_ms == 0) return utc_text(time_ms);
  return format("{:+.3f} s", static_cast<double>(time_ms - postmortem.cause->time_ms) / 1000.0);
}

std::string headline(const Postmortem& postmortem) {
  auto text = format("{}: ", postmortem.run.string());
  switch (postmortem.ending) {
    case Ending::finished:
      return text + "finished";
    case Ending::stopped:
      return text + "stopped in good order";
    case Ending::failed:
      text += "failed";
      return postmortem.exit_code ? text + format(" with exit code {}", *postmortem.exit_code)
                                  : text;
    case Ending::unknown:
      return text + "no end was noted";
  }
  return text;
}

std::string cause_text(const Postmortem& postmortem) {
  if (!postmortem.cause) return {};
  const auto& cause = *postmortem.cause;
  auto text = row("first cause", cause.text);
  text += row("who", who(cause));
  if (cause.time_ms != 0) text += row("when", utc_text(cause.time_ms) + " UTC");
  if (!cause.end_of_task.empty()) text += row("its task", "ended by " + cause.end_of_task);
  if (!cause.collective.empty()) text += row("in", cause.collective);
  for (const auto& line : cause.account) {
    text += row(&line == &cause.account.front() ? "NCCL says" : "", line);
  }
  if (!cause.log.empty()) text += row("told by", cause.log);
  return text;
}

std::string events_text(const Postmortem& postmortem) {
  std::string text;
  for (std::size_t index = 0; index < std::min(postmortem.events.size(), most_shown); ++index) {
    const auto& event = postmortem.events[index];
    text += row(index == 0 ? "then" : "",
                format("{}  {}  {}", when(postmortem, event.time_ms), event.who, event.what));
  }
  if (postmortem.events.size() > most_shown) {
    text += row("", format("and {} more (--log shows all)", postmortem.events.size() - most_shown));
  }
  return text;
}

}  // namespace

std::string text_of(const Postmortem& postmortem) {
  auto text = one_line(headline(postmortem)) + "\n";
  text += cause_text(postmortem);
  text += events_text(postmortem);
  auto progress = postmortem.last_step == 0 ? std::string("no step was finished")
                                            : format("step {}", postmortem.last_step);
  if (postmortem.last_loss) progress += format(", loss {:.4f}", *postmortem.last_loss);
  if (postmortem.newest_checkpoint) {
    progress += format("; newest checkpoint: step {}", *postmortem.newest_checkpoint);
  }
  if (postmortem.starts > 1) progress += format("; started {} times", postmortem.starts);
  text += row("progress", progress);
  if (!postmortem.job.empty()) {
    text += row("slurm",
                format("job {}{}{}", postmortem.job, postmortem.slurm.state.empty() ? "" : ": ",
                       postmortem.slurm.state.empty()
                           ? ""
                           : postmortem.slurm.state + " (" + postmortem.slurm.detail + ")"));
  }
  for (const auto& advice : postmortem.advice) {
    text += row(&advice == &postmortem.advice.front() ? "what to do" : "", advice);
  }
  for (const auto& note : postmortem.notes) text += row("note", note);
  return text;
}

base::Json to_json(const Postmortem& postmortem) {
  base::Json json;
  json["run"] = postmortem.run.string();
  json["ending"] = name(postmortem.ending);
  json["exit_code"] =
      postmortem.exit_code ? base::Json(*postmortem.exit_code) : base::Json(nullptr);
  json["cause"] = nullptr;
  if (postmortem.cause) {
    const auto& cause = *postmortem.cause;
    json["cause"] = {{"text", cause.text},
                     {"rank", cause.rank ? base::Json(*cause.rank) : base::Json(nullptr)},
                     {"task", cause.task ? base::Json(*cause.task) : base::Json(nullptr)},
                     {"host", cause.host},
                     {"time_ms", cause.time_ms},
                     {"collective", cause.collective},
                     {"account", cause.account},
                     {"log", cause.log},
                     {"end_of_task", cause.end_of_task}};
  }
  json["events"] = base::Json::array();
  for (const auto& event : postmortem.events) {
    json["events"].push_back(
        {{"time_ms", event.time_ms}, {"who", event.who}, {"what", event.what}});
  }
  json["last_step"] = postmortem.last_step;
  json["last_loss"] =
      postmortem.last_loss ? base::Json(*postmortem.last_loss) : base::Json(nullptr);
  json["starts"] = postmortem.starts;
  json["newest_checkpoint"] = postmortem.newest_checkpoint
                                  ? base::Json(*postmortem.newest_checkpoint)
                                  : base::Json(nullptr);
  json["slurm"] = {{"job", postmortem.job},
                   {"state", postmortem.slurm.state},
                   {"detail", postmortem.slurm.detail}};
  json["advice"] = postmortem.advice;
  json["notes"] = postmortem.notes;
  return json;
}

}  // namespace trireme::postmortem
