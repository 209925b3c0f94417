// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/format.hpp"
#include "trireme/base/utc.hpp"
#include "trireme/report/run_view.hpp"

#include <cmath>
#include <string>
#include <vector>

namespace trireme::tests {

/// metrics.jsonl of a run, line by line as training writes it: a step takes 100 ms and makes 1000
/// tokens a second; its loss is 100 less its number, and half of that in every second start.
class RecordText {
 public:
  RecordText& start(int first_step) {
    if (has_started_) again();
    has_started_ = true;
    return line(base::format(R"("kind":"event","event":"start","step":{},"tokens_per_step":100)",
                             first_step));
  }
  /// Another start, whose first line is lost.
  RecordText& again() {
    ++restart_;
    return *this;
  }
  RecordText& steps(int first, int last) {
    for (int step = first; step <= last; ++step) {
      line(base::format(
          R"("kind":"train","step":{},"loss":{},"tokens":{},"step_ms":100,"tokens_per_second":1000,)"
          R"("mfu":0.25,"data_ms":10,"epochs":{},"optimizer_phases_ms":{{"gather":1}})",
          step, loss(step, restart_), 100 * step, step / 4.0));
    }
    return *this;
  }
  RecordText& save(int step, const char* tier = "shared") {
    return line(base::format(R"("kind":"save","step":{},"bytes":1048576,"stall_ms":5,"tier":"{}")",
                             step, tier));
  }
  RecordText& evaluation(int step) {
    return line(base::format(R"("kind":"eval","step":{},"loss":9,"seconds":1)", step));
  }
  /// Samples of an evaluation, whose text is so long.
  RecordText& samples(int step, std::size_t bytes) {
    return line(base::format(
        R"("kind":"sample","step":{},"temperature":0,"samples":[{{"prompt":"a","text":"{}"}}])",
        step, std::string(bytes, 'b')));
  }
  RecordText& event(const std::string& name, int step, const std::string& more = "") {
    return line(base::format(R"("kind":"event","event":"{}","step":{}{})", name, step, more));
  }
  /// Members of a line, but run, restart and time.
  RecordText& line(const std::string& members) {
    clock_ms_ += 100;
    text_ +=
        base::format("{{{},\"run\":\"r\",\"restart\":{},\"time\":\"{}\"}}\n", members, restart_,
                     base::utc_text({clock_ms_ / 1000, clock_ms_ % 1000 * 1'000'000}));
    return *this;
  }
  RecordText& pass(std::int64_t milliseconds) {
    clock_ms_ += milliseconds;
    return *this;
  }
  /// The last line loses all but its first `bytes`, and its end.
  RecordText& cut(std::size_t bytes) {
    text_.resize(text_.rfind('\n', text_.size() - 2) + 1 + bytes);
    return *this;
  }
  RecordText& append(const std::string& text) {
    text_ += text;
    return *this;
  }
  const std::string& text() const { return text_; }
  std::int64_t now_ms() const { return clock_ms_; }
  static double loss(int step, int restart) { return (100.0 - step) / (1 + restart % 2); }

 private:
  std::string text_;
  int restart_ = 0;
  bool has_started_ = false;
  /// 2020-01-01 00:00:00 UTC: before any lock that a test takes.
  std::int64_t clock_ms_ = 1577836800000;
};

/// A run that went its own way, and what every list says of it.
struct History {
  const char* name;
  RecordText record;
  std::int64_t step;  ///< at which it stands, of 20
  report::State state = report::State::unknown;
  std::int64_t saved = 0;    ///< the newest save that its state stands on; 0: none
  std::int64_t line = step;  ///< the last step that has a line; 0: none
  int restart = 0;           ///< start that has made it
  std::int64_t repeated = 0;
};

// NOLINTNEXTLINE(readability-function-size): a table
inline std::vector<History> histories() {
  using report::State;
  const auto trained = [] { return RecordText().start(1).steps(1, 10).save(10).steps(11, 12); };
  const auto done = [] { return RecordText().start(1).steps(1, 20).save(20).event("done", 20); };
  const char* const not_finite = R"(,"loss":"nan","grad_norm":"inf")";
  const char* const bits = R"(,"to":10,"why":"bits")";
  std::vector<History> all;
  all.push_back({"as it should", done(), 20, State::finished, 20});
  all.push_back({"stopped", trained().save(12).event("stop", 12), 12, State::stopped, 12});
  all.push_back({"nothing yet", RecordText().start(1), 0});
  all.push_back({"no line", RecordText(), 0});
  all.push_back({"killed behind a save", trained(), 12, State::unknown, 10});
  all.push_back({"begun again behind it", trained().start(11), 10, State::unknown, 10, 10, 0, 2});
  all.push_back(
      {"made again", trained().start(11).steps(11, 12), 12, State::unknown, 10, 12, 1, 2});
  all.push_back({"went back", trained().save(12).event("went back", 12, bits), 10, State::unknown,
                 10, 10, 0, 2});
  all.push_back({"went back and on", trained().save(12).event("went back", 12, bits).steps(11, 11),
                 11, State::unknown, 10, 11, 0, 2});
  all.push_back({"went back beyond its record",
                 RecordText().start(15).steps(15, 16).event("went back", 16, bits), 10,
                 State::unknown, 0, 0, 0, 2});
  // The disk took the steps of the last start, and none of its lines.
  all.push_back({"saved behind its record", RecordText().start(1).steps(1, 8).start(11), 10,
                 State::unknown, 0, 8});
  all.push_back({"saved, and the line of its step was lost",
                 RecordText().start(1).steps(1, 8).save(10, "nodes"), 10, State::unknown, 10, 8});
  all.push_back({"nothing to do", done().start(21).event("done", 20), 20, State::finished, 20});
  all.push_back({"told to end before",
                 RecordText().start(1).steps(1, 30).save(30).start(31).event("done", 30), 30,
                 State::finished, 30});
  all.push_back({"clock set back", trained().pass(-86'400'000).start(11).steps(11, 14), 14,
                 State::unknown, 10, 14, 1, 2});
  all.push_back({"clock set back in a start",
                 trained().pass(-86'400'000).steps(13, 14).save(14).event("stop", 14), 14,
                 State::stopped, 14});
  all.push_back({"cut line", trained().steps(13, 13).cut(30), 12, State::unknown, 10});
  all.push_back({"cut line, and begun again",
                 trained().steps(13, 13).cut(30).append("\n").start(13).steps(13, 13), 13,
                 State::unknown, 10, 13, 1});
  all.push_back(
      {"steps skipped", trained().event("skipped", 13, not_finite), 13, State::unknown, 10, 12});
  all.push_back({"none made but one skipped", RecordText().start(1).event("skipped", 1, not_finite),
                 1, State::unknown, 0, 0});
  all.push_back(
      {"goes on from another run's step", RecordText().start(15), 14, State::unknown, 0, 0});
  // The disk was full as the second start began.
  all.push_back(
      {"no line says where a start began",
       RecordText().start(1).steps(1, 15).again().event("skipped", 11, not_finite).steps(12, 13),
       13, State::unknown, 0, 13, 1, 5});
  all.push_back({"a late line of a process that has lost the run",
                 trained().start(11).steps(11, 13).append(
                     R"({"kind":"processors","restart":0,"step":13,"node":"n"})"
                     "\n"),
                 13, State::unknown, 10, 13, 1, 2});
  for (const auto* event : {"done", "stop"}) {
    all.push_back({"a late end of a process that has lost the run",
                   trained().start(11).steps(11, 14).append(
                       base::format(R"({{"kind":"event","event":"{}","restart":0,"step":12}})"
                                    "\n",
                                    event)),
                   14, State::unknown, 10, 14, 1, 2});
  }
  all.push_back({"begun anew", done().start(1).steps(1, 3), 3, State::unknown, 0, 3, 1, 20});
  all.push_back({"begun anew, none yet", done().start(1), 0, State::unknown, 0, 0, 0, 20});
  for (const std::size_t bytes : {std::size_t{20} << 10, std::size_t{600} << 10}) {
    all.push_back({"a long line behind its steps", trained().evaluation(12).samples(12, bytes), 12,
                   State::unknown, 10});
    all.push_back({"a long line, and begun again behind it",
                   trained().samples(12, bytes).start(11).event("skipped", 11, not_finite), 11,
                   State::unknown, 10, 10, 0, 2});
  }
  all.push_back({"of a newer version",
                 done()
                     .line(R"("kind":"weather","step":77,"sun":[1,{"of":"kinds"}])")
                     .line(R"("kind":["no","text"],"step":78)")
                     .event("summary", 20, R"(,"of":{"what":"nobody knows"})"),
                 20, State::finished, 20});
  return all;
}

}  // namespace trireme::tests
