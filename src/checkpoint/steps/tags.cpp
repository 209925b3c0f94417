// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/base/random_id.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/checkpoint/retention.hpp"
#include "trireme/store/object_store.hpp"

#include "checkpoint/folder_names.hpp"
#include "checkpoint/objects/objects.hpp"

#include <algorithm>
#include <cctype>
#include <system_error>

namespace trireme::checkpoint {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t max_tag_length = 64;

fs::path tags_folder(const fs::path& checkpoints) {
  return checkpoints / "tags";
}

bool is_tag(std::string_view name) {
  const auto is_plain = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  return !name.empty() && name.size() <= max_tag_length && is_plain(name.front()) &&
         std::all_of(name.begin(), name.end(),
                     [&](char c) { return is_plain(c) || c == '.' || c == '_' || c == '-'; });
}

base::Failure cannot(std::string_view doing, const fs::path& path, const std::error_code& error) {
  return base::checkpoint_failure(
      base::format("cannot {} '{}': {}", doing, path.string(), error.message()));
}

/// Longer than any text of a tag in an object store: the link that it would be in a folder.
constexpr std::uint64_t max_tag_text = 256;

/// Step that a link names; none if it names something else, or is not there.
std::optional<std::int64_t> step_of(const fs::path& link) {
  std::error_code error;
  const auto target = store::is_url(link) ? fs::path(objects::read_text(link, max_tag_text))
                                          : fs::read_symlink(link, error);
  if (error || target.parent_path() != "..") return std::nullopt;
  const auto name = parse_folder_name(target.filename().string());
  if (!name || name->kind != FolderKind::committed) return std::nullopt;
  return name->step;
}

/// Names in a folder of tags, in any order.
std::vector<std::string> names_in(const fs::path& folder) {
  std::vector<std::string> names;
  if (store::is_url(folder)) {
    for (const auto& [name, bytes] : objects::objects_in(folder)) names.push_back(name);
    return names;
  }
  std::error_code error;
  for (fs::directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    names.push_back(at->path().filename().string());
  }
  return names;
}

/// Makes a link to a step, in place of one that is there.
base::Status make_link(const fs::path& link, const fs::path& step) {
  const auto target = fs::path("..") / step.filename();
  if (store::is_url(link)) {
    objects::write_text(link, target.native());
    return {};
  }
  const auto folder = link.parent_path();
  std::error_code error;
  fs::create_directories(folder, error);
  if (error) return cannot("make folder", folder, error);
  const auto fresh = folder / base::format(".{}", base::random_id());
  fs::create_directory_symlink(target, fresh, error);
  if (error) return cannot("make link", fresh, error);
  fs::rename(fresh, link, error);
  if (error) {
    std::error_code ignored;
    fs::remove(fresh, ignored);
    return cannot("name", link, error);
  }
  return {};
}

base::Status remove_link(const fs::path& link) {
  std::error_code error;
  if (store::is_url(link)) {
    objects::remove(link);
  } else {
    fs::remove(link, error);
  }
  if (error) return cannot("remove", link, error);
  return {};
}

bool is_taken(const fs::path& link) {
  if (store::is_url(link)) return objects::size(link).has_value();
  std::error_code error;
  return fs::exists(fs::symlink_status(link, error));
}

}  // namespace

std::vector<Tag> tags(const fs::path& checkpoints) {
  std::vector<Tag> found;
  const auto folder = tags_folder(checkpoints);
  for (const auto& name : names_in(folder)) {
    if (!is_tag(name)) continue;
    if (const auto step = step_of(folder / name)) found.push_back({name, *step});
  }
  std::sort(found.begin(), found.end(), [](const Tag& a, const Tag& b) { return a.name < b.name; });
  return found;
}

base::Status add_tag(const StepFolder& step, std::string_view name, Retag retag) {
  if (!is_tag(name)) {
    return base::Failure{base::ExitCode::usage,
                         base::format("'{}' is no tag; use up to {} letters, digits and '._-', and "
                                      "begin with a letter or digit",
                                      name, max_tag_length)};
  }
  const auto folder = tags_folder(step.path.parent_path());
  const auto link = folder / name;
  if (retag == Retag::refuse && is_taken(link)) {
    const auto other = step_of(link);
    if (other == step.step) return {};
    return base::checkpoint_failure(base::format("'{}' is taken{}; use another name, or --move",
                                                 link.string(),
                                                 other ? base::format(" by step {}", *other) : ""));
  }
  if (auto made = make_link(link, step.path); !made) return made;
  // A training run that removes old steps looks for tags after it has renamed a step.
  if (is_step(step.path)) return {};
  static_cast<void>(remove_link(link));
  return base::checkpoint_failure(
      base::format("'{}' was removed meanwhile; tag another step", step.path.string()));
}

base::Status remove_tag(const fs::path& checkpoints, std::string_view name) {
  const auto link = tags_folder(checkpoints) / name;
  if (!is_tag(name) || !step_of(link)) {
    std::vector<std::string> names;
    for (const auto& tag : tags(checkpoints)) names.push_back(tag.name);
    return base::checkpoint_failure(base::format("there is no tag '{}' in '{}'{}", name,
                                                 tags_folder(checkpoints).string(),
                                                 base::did_you_mean(std::string(name), names)));
  }
  return remove_link(link);
}

}  // namespace trireme::checkpoint
