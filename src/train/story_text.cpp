#include "trireme/base/format.hpp"
#include "trireme/train/story.hpp"

#include <algorithm>

namespace trireme::train {
namespace {

using base::format;

constexpr std::size_t most_shown = 40;

std::string one_line(std::string text) {
  std::replace(text.begin(), text.end(), '\n', ' ');
  // What others wrote is shown to a terminal.
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
std::string when(const Story& story, std::int64_t time_ms) {
  if (!story.cause || story.cause->time_ms == 0) return utc_text(time_ms);
  return format("{:+.3f} s", static_cast<double>(time_ms - story.cause->time_ms) / 1000.0);
}

std::string headline(const Story& story) {
  auto text = format("{}: ", story.run.string());
  switch (story.ending) {
    case Ending::finished:
      return text + "finished";
    case Ending::stopped:
      return text + "stopped in good order";
    case Ending::failed:
      text += "failed";
      return story.exit_code ? text + format(" with exit code {}", *story.exit_code) : text;
    case Ending::unknown:
      return text + "no end was noted";
  }
  return text;
}

std::string cause_text(const Story& story) {
  if (!story.cause) return {};
  const auto& cause = *story.cause;
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

std::string events_text(const Story& story) {
  std::string text;
  for (std::size_t index = 0; index < std::min(story.events.size(), most_shown); ++index) {
    const auto& event = story.events[index];
    text += row(index == 0 ? "then" : "",
                format("{}  {}  {}", when(story, event.time_ms), event.who, event.what));
  }
  if (story.events.size() > most_shown) {
    text += row("", format("and {} more (--log shows all)", story.events.size() - most_shown));
  }
  return text;
}

}  // namespace

std::string story_text(const Story& story) {
  auto text = one_line(headline(story)) + "\n";
  text += cause_text(story);
  text += events_text(story);
  auto progress = story.last_step == 0 ? std::string("no step was finished")
                                       : format("step {}", story.last_step);
  if (story.last_loss) progress += format(", loss {:.4f}", *story.last_loss);
  if (story.newest_checkpoint) {
    progress += format("; newest checkpoint: step {}", *story.newest_checkpoint);
  }
  if (story.starts > 1) progress += format("; started {} times", story.starts);
  text += row("progress", progress);
  if (!story.job.empty()) {
    text += row("slurm", format("job {}{}{}", story.job, story.slurm.state.empty() ? "" : ": ",
                                story.slurm.state.empty()
                                    ? ""
                                    : story.slurm.state + " (" + story.slurm.detail + ")"));
  }
  for (const auto& advice : story.advice) {
    text += row(&advice == &story.advice.front() ? "what to do" : "", advice);
  }
  for (const auto& note : story.notes) text += row("note", note);
  return text;
}

base::Json to_json(const Story& story) {
  base::Json json;
  json["run"] = story.run.string();
  json["ending"] = name(story.ending);
  json["exit_code"] = story.exit_code ? base::Json(*story.exit_code) : base::Json(nullptr);
  json["cause"] = nullptr;
  if (story.cause) {
    const auto& cause = *story.cause;
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
  for (const auto& event : story.events) {
    json["events"].push_back(
        {{"time_ms", event.time_ms}, {"who", event.who}, {"what", event.what}});
  }
  json["last_step"] = story.last_step;
  json["last_loss"] = story.last_loss ? base::Json(*story.last_loss) : base::Json(nullptr);
  json["starts"] = story.starts;
  json["newest_checkpoint"] =
      story.newest_checkpoint ? base::Json(*story.newest_checkpoint) : base::Json(nullptr);
  json["slurm"] = {
      {"job", story.job}, {"state", story.slurm.state}, {"detail", story.slurm.detail}};
  json["advice"] = story.advice;
  json["notes"] = story.notes;
  return json;
}

}  // namespace trireme::train
