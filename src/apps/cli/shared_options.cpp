// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/shared_options.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/config/arrangement.hpp"

#include "apps/cli/option_values.hpp"

namespace trireme::apps {

std::span<const DegreeOption> degree_options() {
  static constexpr DegreeOption all[] = {
      {"--tensor-parallel", "--tp", "parallel.tensor", "Ranks that share every matrix"},
      {"--context-parallel", "--cp", "parallel.context", "Ranks that share each sequence"},
      {"--pipeline-parallel", "--pp", "parallel.pipeline", "Stages that share the layers"},
      {"--data-parallel", "--dp", "parallel.data",
       "Replicas that share the global batch; auto: what is left"}};
  return all;
}

void add_ranks(CLI::App& app, int& ranks, const std::string& meaning, const char* earlier,
               int most) {
  auto* const option = app.add_option("--ranks", ranks, meaning)->type_name("N");
  option->check(in_range(1, most).description(""));
  if (earlier != nullptr) {
    add_earlier(app, earlier, ranks, option)->check(in_range(1, most).description(""));
  }
}

base::Result<int> ranks_in_all(int given, const config::Config& config) {
  if (given > 0) return given;
  const auto least = config::least_world(config);
  if (least > most_ranks) {
    return base::usage_failure(base::format(
        "{}{}, {} and {} are {} ranks, more than {}; lower one", config.cited("parallel.tensor"),
        config.options().parallel.context > 1 ? ", " + config.cited("parallel.context") : "",
        config.cited("parallel.pipeline"), config.cited("parallel.data"), least, most_ranks));
  }
  return static_cast<int>(least);
}

CLI::Option* add_svg(CLI::App& app, std::string& file, const std::string& meaning,
                     const char* earlier) {
  auto* const option =
      app.add_option("--svg", file, meaning + "; - is standard output")->type_name("FILE");
  if (earlier != nullptr) add_earlier(app, earlier, file, option);
  return option;
}

void write_drawing(const Drawing& drawing, Context& context) {
  const bool replaces_text = drawing.file == "-";
  if (replaces_text && drawing.json) {
    throw base::Error(base::ExitCode::usage,
                      "--svg - does not go with --json (both are written to standard output); give "
                      "--svg a file");
  }
  if (!drawing.file.empty() && !replaces_text) {
    base::write_file_durably(drawing.file, drawing.picture());
    base::log::info(drawing.room, "{}: {}", drawing.file, drawing.title);
  }
  context.out.write(replaces_text ? drawing.picture() : drawing.text());
}

}  // namespace trireme::apps
