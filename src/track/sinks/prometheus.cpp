// SPDX-License-Identifier: Apache-2.0
// Prometheus' text format 0.0.4 for the textfile collector of node_exporter: the newest number of
// each metric, in base units, in a file that is replaced as a whole.
#include "trireme/base/error.hpp"

#include "sinks.hpp"
#include "track/newest.hpp"

namespace trireme::track {
namespace {

namespace fs = std::filesystem;

class Prometheus : public Sink {
 public:
  explicit Prometheus(fs::path file) : file_(std::move(file)) {}

  void send(const RunFacts& run, std::span<const Row> rows, base::Json& state) override {
    note_newest(rows, state);
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
    Exposition exposition;
    add_newest(run, state, exposition);
    base::success_or_throw(base::make_folders_durably(file_.parent_path()));
    base::write_file_durably(file_, exposition.text());
  }

  fs::path file_;
};

}  // namespace

std::unique_ptr<Sink> prometheus_sink(const fs::path& file) {
  return std::make_unique<Prometheus>(file);
}

}  // namespace trireme::track
