// SPDX-License-Identifier: Apache-2.0
// Prometheus' text format 0.0.4 for the textfile collector of node_exporter: the newest number of
// each metric, in base units, in a file that is replaced as a whole.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "sinks.hpp"

namespace trireme::track {
namespace {

namespace fs = std::filesystem;

/// Value of a label: backslash, quote and line break are escaped.
std::string escaped(const std::string& text) {
  std::string value;
  for (const char letter : text) {
    if (letter == '\\' || letter == '"') value += '\\';
    value += letter == '\n' ? std::string("\\n") : std::string(1, letter);
  }
  return value;
}

class Prometheus : public Sink {
 public:
  explicit Prometheus(fs::path file) : file_(std::move(file)) {}

  void send(const RunFacts& run, std::span<const Row> rows, base::Json& state) override {
    if (!state.is_object()) state = base::Json::object();
    for (const auto& row : rows) {
      for (const auto& point : row.points) {
        const auto& metric = metrics()[point.metric];
        state[metric.exposition] = point.value * metric.to_base_unit;
      }
    }
    write(run, state);
  }
  /// Its file tells then whether the run is running.
  void end(const RunFacts& run, base::Json& state) override {
    if (!state.is_object()) state = base::Json::object();
    write(run, state);
  }
  std::string place(const RunFacts&) const override { return file_.string(); }

 private:
  void write(const RunFacts& run, const base::Json& state) const {
    const auto label = base::format("{{run=\"{}\"}}", escaped(run.name));
    std::string text;
    const auto add = [&](const char* name, const char* help, const char* type, double value) {
      text += base::format("# HELP {} {}\n# TYPE {} {}\n{}{} {}\n", name, help, name, type, name,
                           label, base::number_text(value));
    };
    add("trireme_up", "Whether a process holds the run", "gauge",
        run.state == report::State::running ? 1 : 0);
    for (const auto& metric : metrics()) {
      const auto found = state.find(metric.exposition);
      if (found == state.end() || !found->is_number()) continue;
      add(metric.exposition, metric.help, metric.is_counter ? "counter" : "gauge",
          found->get<double>());
    }
    base::success_or_throw(base::make_folders_durably(file_.parent_path()));
    base::write_file_durably(file_, text);
  }

  fs::path file_;
};

}  // namespace

std::unique_ptr<Sink> prometheus_sink(const fs::path& file) {
  return std::make_unique<Prometheus>(file);
}

}  // namespace trireme::track
