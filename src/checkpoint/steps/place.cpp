// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/place.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/folder.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/path.hpp"
#include "trireme/base/random_id.hpp"
#include "trireme/base/shell_word.hpp"
#include "trireme/base/text.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/store/object_store.hpp"

#include "checkpoint/objects/objects.hpp"

#include <unistd.h>

#include <algorithm>
#include <cctype>
#include <cerrno>

namespace trireme::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_text_bytes = 8192;

/// File with the id that tells a run from others. A copy of the run has it, too.
fs::path id_file(const fs::path& run) {
  return run / "local-storage.id";
}
fs::path location_file(const fs::path& run) {
  return run / "checkpoints.location";
}

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// "gs://...", "S3:/...": letters and digits before the first ":/".
bool looks_like_url(std::string_view text) {
  const auto scheme = text.substr(0, text.find(":/"));
  return scheme.size() > 1 && scheme.size() < text.size() &&
         std::all_of(scheme.begin(), scheme.end(),
                     [](unsigned char letter) { return std::isalnum(letter) != 0; });
}

/// A URL as it is.
fs::path normal(const fs::path& path) {
  return store::is_url(path) ? path : base::absolute(path).lexically_normal();
}

std::string text_of(const fs::path& path) {
  return base::value_or_throw(
      base::read_text_file(path, base::ExitCode::checkpoint, max_text_bytes));
}

/// First line of a text, in which both files have what programs read.
std::string first_line(std::string_view text) {
  return std::string(base::trimmed(text.substr(0, text.find('\n'))));
}

/// Which run keeps its checkpoints in a directory: "ID\nRUN\n".
fs::path claim_file(const fs::path& directory) {
  return directory / "run";
}
/// RUN of that text.
std::string claimed_run(const std::string& text) {
  return first_line(text.substr(std::min(text.find('\n') + 1, text.size())));
}

std::string claim_of(const fs::path& run) {
  return base::format("{}\n{}\n", run_id(run), normal(run).string());
}
/// Text of a claim; empty without one.
std::string read_claim(const fs::path& path) {
  if (store::is_url(path)) return objects::read_text(path, max_text_bytes);
  return is_file(path) ? text_of(path) : std::string();
}

/// True if `other` is there, has this id as well, and is another folder than the run: one of both
/// is a copy. A run that was moved, or has two names, is not.
bool is_copied(const fs::path& run, const fs::path& other, const std::string& id) {
  std::error_code ignored;
  return is_file(id_file(other)) && first_line(text_of(id_file(other))) == id &&
         !fs::equivalent(run, other, ignored);
}

/// Refuses a claim of another run, or of the run that this one is a copy of; `id` is this run's.
base::Status not_of_another(const fs::path& directory, const fs::path& run, const std::string& id,
                            const std::string& found) {
  const auto other = claimed_run(found);
  if (first_line(found) != id) {
    return base::usage_failure(base::format(
        "checkpoint.directory '{}' has the checkpoints of another run, '{}' (both would "
        "remove each other's); give each run one of its own, or remove '{}' if that "
        "run is no more",
        directory.string(), base::printable(other), claim_file(directory).string()));
  }
  if (!is_copied(run, other, id)) return {};
  return base::usage_failure(base::format(
      "checkpoint.directory '{}' has the checkpoints of run '{}', of which '{}' is a copy "
      "(both would remove and continue each other's); to go on in the copy remove '{}' and "
      "'{}' and give it a checkpoint.directory of its own with checkpoint.load = {}, or remove "
      "'{}' if only the copy is to go on",
      directory.string(), base::printable(other), normal(run).string(), id_file(run).string(),
      location_file(run).string(), directory.string(), id_file(other).string()));
}

/// Writes a claim where there is none. False if there is one: of several runs that begin at once
/// one has true.
bool create_claim(const fs::path& path, const std::string& text) {
  if (store::is_url(path)) return objects::create(path, text);
  base::success_or_throw(base::make_folders_durably(path.parent_path()));
  if (is_file(path)) return false;
  const fs::path whole = base::format("{}.{}", path.string(), base::random_id());
  base::write_file_durably(whole, text);
  const int error = ::link(whole.c_str(), path.c_str()) == 0 ? 0 : errno;
  std::error_code ignored;
  fs::remove(whole, ignored);
  if (error == EEXIST) return false;
  // A file system without links, where two at once are told apart at their commits.
  if (error != 0) base::write_file_durably(path, text);
  base::sync_folder(path.parent_path());
  return true;
}

void claim(const fs::path& directory, const fs::path& run) {
  const auto path = claim_file(directory);
  const auto mine = claim_of(run);
  if (create_claim(path, mine)) return;
  const auto found = read_claim(path);
  if (found == mine) return;
  if (!found.empty()) base::success_or_throw(not_of_another(directory, run, run_id(run), found));
  if (store::is_url(directory)) {
    objects::write_text(path, mine);
  } else {
    base::write_file_durably(path, mine);
  }
}

}  // namespace

fs::path checkpoints_of_run(const fs::path& run) {
  const auto file = location_file(run);
  if (!store::is_url(run) && is_file(file)) return first_line(text_of(file));
  return run / "checkpoints";
}

namespace {

/// The place that checkpoint.directory names for the run.
fs::path named_place(const fs::path& run, const std::string& directory) {
  auto chosen = run / "checkpoints";
  if (store::is_url(directory)) {
    chosen = directory;
  } else if (!directory.empty()) {
    chosen = normal(directory);
  }
  return chosen.has_filename() ? chosen : chosen.parent_path();
}

base::Status not_elsewhere(const fs::path& run, const std::string& directory) {
  if (!store::is_url(directory) && looks_like_url(directory)) {
    return base::usage_failure(base::format(
        "checkpoint.directory is '{}', which is no URL that is known here (it would be a "
        "folder of that odd name); write s3://BUCKET/NAME or webhdfs://HOST:PORT/PATH, "
        "or ./{} if you mean that folder",
        base::printable(directory), base::printable(directory)));
  }
  const auto before = checkpoints_of_run(run);
  if (normal(named_place(run, directory)) != normal(before) && !list(before).empty()) {
    return base::usage_failure(
        base::format("checkpoint.directory is '{}', but this run's checkpoints are in '{}' (it "
                     "would begin anew); set checkpoint.directory = {}, or start another run with "
                     "checkpoint.load = {}",
                     directory, before.string(), before.string(), before.string()));
  }
  return {};
}

}  // namespace

base::Status check_checkpoints(const fs::path& run, const std::string& directory) {
  if (auto status = not_elsewhere(run, directory); !status.ok()) return status;
  if (directory.empty() || store::is_url(directory)) return {};
  const auto chosen = named_place(run, directory);
  if (const auto fault = base::folder_fault(chosen); !fault.empty()) {
    return base::Failure{
        base::ExitCode::checkpoint,
        base::format("checkpoint.directory = {} cannot be made or written to ({}); "
                     "name a folder that can",
                     base::printable(directory), fault)};
  }
  const auto found = read_claim(claim_file(chosen));
  if (found.empty()) return {};
  const auto id = is_file(id_file(run)) ? first_line(text_of(id_file(run))) : std::string();
  return not_of_another(chosen, run, id, found);
}

fs::path choose_checkpoints(const fs::path& run, const std::string& directory) {
  base::success_or_throw(not_elsewhere(run, directory));
  const auto before = checkpoints_of_run(run);
  const auto chosen = named_place(run, directory);
  // A directory that is another run's is not noted.
  if (!directory.empty()) claim(chosen, run);
  if (normal(chosen) == normal(run / "checkpoints")) {
    // Without a note the run may be moved with its steps.
    std::error_code ignored;
    fs::remove(location_file(run), ignored);
  } else if (normal(chosen) != normal(before)) {
    base::write_file_durably(location_file(run), chosen.native() + "\n");
  }
  return chosen;
}

std::optional<fs::path> run_of_checkpoints(const fs::path& directory) {
  const auto path = claim_file(directory);
  const bool is_url = store::is_url(directory);
  if (is_url ? !objects::size(path) : !is_file(path)) return std::nullopt;
  return claimed_run(is_url ? objects::read_text(path, max_text_bytes) : text_of(path));
}

void check_claim(const fs::path& directory, const fs::path& run) {
  const auto found = read_claim(claim_file(directory));
  if (found.empty() || found == claim_of(run)) return;
  throw base::Error(
      base::ExitCode::launch,
      base::format(
          "'{}' has been taken over by run '{}' since this start of '{}' (two at once would "
          "remove each other's steps); end one of both, and give each a "
          "checkpoint.directory of its own",
          directory.string(), base::printable(claimed_run(found)), normal(run).string()));
}

void check_may_remove(const fs::path& directory, const fs::path& run) {
  // Its own folder goes with a run, whatever a copied claim in it says.
  if (!store::is_url(directory) && normal(directory) == normal(run / "checkpoints")) return;
  const auto found = read_claim(claim_file(directory));
  if (found.empty()) return;
  const auto other = claimed_run(found);
  std::error_code ignored;
  if (fs::equivalent(run, other, ignored)) return;
  throw base::Error(
      base::ExitCode::usage,
      base::format(
          "'{}' has the checkpoints of run '{}', not of '{}', which is a copy of that run or what "
          "it was moved to (what one removes, the other would lack); name '{}', or, if that is no "
          "more, take its checkpoints over first: trireme train --resume {}",
          directory.string(), base::printable(other), normal(run).string(), base::printable(other),
          base::shell_word(normal(run).string())));
}

std::string run_id(const fs::path& run) {
  const auto path = id_file(run);
  if (is_file(path)) {
    if (auto id = first_line(text_of(path)); !id.empty()) return id;
  }
  const auto id = base::random_id();
  base::write_file_durably(path, id + "\n");
  return id;
}

bool is_step(const fs::path& path) {
  if (store::is_url(path)) return objects::has_manifest(path);
  std::error_code ignored;
  return fs::exists(path / "manifest.json", ignored);
}

bool is_there(const fs::path& step) {
  if (store::is_url(step)) return is_step(step);
  std::error_code ignored;
  return fs::exists(step, ignored);
}

std::optional<fs::path> find_checkpoints(const fs::path& path) {
  for (const auto& folder : {checkpoints_of_run(path), path}) {
    std::error_code ignored;
    const bool is_folder = store::is_url(folder) ? !objects::folders_in(folder).empty()
                                                 : fs::is_directory(folder, ignored);
    if (is_folder) return folder;
  }
  return std::nullopt;
}

}  // namespace trireme::checkpoint
