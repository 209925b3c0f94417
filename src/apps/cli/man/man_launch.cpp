// SPDX-License-Identifier: Apache-2.0
// The manual pages of the launch, from the tables of room launch.
#include "trireme/base/format.hpp"
#include "trireme/launch/contract.hpp"
#include "trireme/launch/options.hpp"
#include "trireme/launch/plugstack_arguments.hpp"
#include "trireme/launch/task_variables.hpp"

#include "apps/cli/man/man_pages.hpp"
#include "build_info.hpp"

namespace trireme::apps {
namespace {

using base::format;

std::string heading(std::string_view name, int section, std::string_view manual) {
  return format(".TH {} {} \"\" \"Trireme {}\" \"{}\"\n", name, section, roff(build_info::version),
                manual);
}

std::string section(std::string_view title, std::string_view text) {
  return format(".SH {}\n{}\n", title, roff(text));
}

std::string paragraph(std::string_view text) {
  return format(".PP\n{}\n", roff(text));
}

/// List item of each launch option.
std::string option_items() {
  std::string text;
  for (const auto& option : launch::options()) {
    auto meaning = format("{}: {}.\nVariable {}", option.usage, launch::permitted_text(option),
                          option.variable);
    if (!option.key.empty()) meaning += format(", key {}", option.key);
    text += item(format("--{}={}", option.name, option.argument), meaning + ".");
  }
  return text;
}

std::string variable_items() {
  std::string text;
  for (const auto& each : launch::task_variables()) {
    text += item(each.variable, format("Set by {}: {}.", each.set_by, each.says));
  }
  return text;
}

std::string argument_items() {
  std::string text;
  for (const auto& argument : launch::plugstack_arguments()) {
    text += item(launch::permitted_text(argument),
                 format("{}. Default: {}.", argument.meaning, argument.standard));
  }
  return text;
}

}  // namespace

std::string roff(std::string_view text) {
  std::string escaped;
  for (const char letter : text) {
    const bool at_line_start = escaped.empty() || escaped.back() == '\n';
    if (at_line_start && (letter == '.' || letter == '\'')) escaped += "\\&";
    if (letter == '\\') {
      escaped += "\\e";
    } else if (letter == '-') {
      escaped += "\\-";
    } else if (letter == '\n') {
      escaped += "\n.br\n";
    } else if (letter != '`') {  // Markdown's mark for code
      escaped += letter;
    }
  }
  return escaped;
}

std::string item(std::string_view title, std::string_view text) {
  return format(".TP\n.B {}\n{}\n", roff(title), roff(text));
}

std::string launch_page() {
  auto text = heading("TRIREME\\-LAUNCH", 7, "Miscellanea");
  text += section("NAME", "");
  text.pop_back();
  text +=
      "trireme\\-launch \\- how a request such as \\-\\-tensor\\-parallel=2 reaches the ranks\n";
  text += ".SH SYNOPSIS\n";
  for (const char* line : {"sbatch --tensor-parallel=2 --pipeline-parallel=2 job.sh",
                           "srun --mpi=pmix --tensor-parallel=2 trireme train CONFIG",
                           "TRIREME_TENSOR_PARALLEL=2 mpirun -n 4 trireme train CONFIG"}) {
    text += format(".B {}\n.br\n", roff(line));
  }
  text += section("DESCRIPTION",
                  "The same may be asked for in three ways: by an option of srun, sbatch or salloc "
                  "(with the plugin spank_trireme), by a line #SBATCH of a batch script, and by a "
                  "variable, which needs neither plugin nor Slurm.");
  text += paragraph(
      "What cannot be is refused where it is typed, before a job exists, with the key, the value, "
      "the rule and the nearest choices, and exit code 2. What is not known there is checked by "
      "the "
      "ranks when they start (exit code 3).");
  text += ".SH OPTIONS\n" + option_items();
  text += section("PRECEDENCE",
                  "Of one value the later wins: the default; configuration files; the launch (what "
                  "an enclosing job was submitted with, then variables exported by hand, then "
                  "options of this command); TRIREME_SECTION__KEY; --set of trireme itself.");
  text += paragraph(
      "sbatch and salloc from inside of a job start anew. --trireme=off takes everything away from "
      "one step.");
  text +=
      ".SH ENVIRONMENT\nTasks find the variables of what was asked for, and:\n" + variable_items();
  text += section("SEE ALSO", "trireme(1), spank_trireme(8), srun(1), sbatch(1)");
  return text;
}

std::string plugin_page() {
  auto text = heading("SPANK_TRIREME", 8, "System Administration");
  text += ".SH NAME\nspank_trireme \\- options of Trireme for srun, sbatch and salloc\n";
  text += ".SH SYNOPSIS\n.B optional spank_trireme\\-VERSION.so\n";
  for (const auto& argument : launch::plugstack_arguments()) {
    text += format("[{}]\n", roff(launch::permitted_text(argument)));
  }
  text +=
      section("DESCRIPTION",
              "A line of plugstack.conf, on submitting hosts and on nodes. VERSION is the "
              "major.minor of Slurm: one shared object belongs to one. As optional, a plugin of "
              "another version is a warning; refusals work all the same.");
  text += paragraph(
      "On submitting hosts it adds the options below, refuses impossible requests before a job "
      "exists, and hands on what was asked for. On nodes, and only for jobs that ask, it sets the "
      "tasks' variables and limits, makes a private folder, and notes how each task ends. No "
      "callback on a node ever fails, so no node is drained by it.");
  text += ".SH ARGUMENTS\n" + argument_items();
  text += ".SH OPTIONS\nOf srun, sbatch and salloc:\n" + option_items();
  text += ".SH FILES\n";
  text += item("BASE/jobs/JOB",
               "A folder of the job on this node, 0700, its user's; the epilog "
               "empties it under the user's rights and removes it.");
  text += item("BASE/records/JOB.jsonl",
               "How the tasks of a job on this node ended, one JSON object a line, at most 1 MiB; "
               "root's, readable to all. It stays until the site removes it.");
  text += section("SEE ALSO", "trireme-launch(7), trireme(1), spank(8), slurm.conf(5)");
  return text;
}

}  // namespace trireme::apps
