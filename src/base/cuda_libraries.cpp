// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/cuda_libraries.hpp"

#include "trireme/base/format.hpp"

#include <dlfcn.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>

namespace trireme::base {
namespace {

namespace fs = std::filesystem;

/// Entries of the folder whose names begin so, sorted: a folder's own order is arbitrary.
std::vector<fs::path> entries_of(const fs::path& folder, std::string_view beginning = {}) {
  std::vector<fs::path> entries;
  std::error_code error;
  for (auto at =
           fs::directory_iterator(folder, fs::directory_options::skip_permission_denied, error);
       !error && at != fs::directory_iterator(); at.increment(error)) {
    if (at->path().filename().native().starts_with(beginning)) entries.push_back(at->path());
  }
  std::sort(entries.begin(), entries.end());
  return entries;
}

std::vector<fs::path> folders_in(const std::string& list) {
  std::vector<fs::path> folders;
  for (std::size_t begin = 0; begin <= list.size();) {
    const auto end = std::min(list.find(':', begin), list.size());
    // An empty entry means the current folder to others: no libraries are taken from there.
    if (end > begin) folders.emplace_back(list.substr(begin, end - begin));
    begin = end + 1;
  }
  return folders;
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

class Places {
 public:
  Places(std::string_view file, const Environment& environment, const fs::path& root)
      : file_(file), environment_(environment), root_(root), path_(of_variable("PATH")) {
    found_.emplace_back(file);
  }

  std::vector<std::string> all() {
    for (const char* variable : {"CUDA_HOME", "CUDA_PATH"}) {
      for (const auto& folder : of_variable(variable)) add_toolkit(folder);
    }
    for (const auto& folder : path_) {
      if (is_there(folder / "nvcc")) add_toolkit(folder.parent_path());
    }
    for (const auto& folder : entries_of(root_ / "usr/local", "cuda")) add_toolkit(folder);
    add_toolkit(root_ / "opt/cuda");
    add_wheels_of_interpreters();
    return std::move(found_);
  }

 private:
  std::vector<fs::path> of_variable(std::string_view name) const {
    return folders_in(environment_.get(name).value_or(""));
  }

  void add(const fs::path& folder) {
    const auto path = (folder / file_).lexically_normal().string();
    if (!is_there(path) || std::find(found_.begin(), found_.end(), path) != found_.end()) return;
    found_.push_back(path);
  }

  void add_toolkit(const fs::path& folder) {
    for (const char* part : {"lib64", "lib", "targets/x86_64-linux/lib"}) add(folder / part);
  }

  /// `packages` is a folder such as site-packages.
  void add_wheels(const fs::path& packages) {
    for (const auto& package : entries_of(packages / "nvidia")) add(package / "lib");
  }

  /// `prefix` is the folder above an interpreter's bin.
  void add_prefix(const fs::path& prefix) {
    for (const char* library : {"lib", "lib64"}) {
      for (const auto& python : entries_of(prefix / library, "python3")) {
        add_wheels(python / "site-packages");
        add_wheels(python / "dist-packages");
      }
    }
  }

  /// Links lead to other prefixes, each of which may hold wheels: from /usr/local/bin to a virtual
  /// environment, from there to the interpreter that it was made with.
  void add_interpreter(fs::path program) {
    constexpr int most_links = 8;
    std::error_code error;
    for (int link = 0; link < most_links && is_there(program); ++link) {
      add_prefix(program.parent_path().parent_path());
      const auto target = fs::read_symlink(program, error);
      if (error) return;
      program = (program.parent_path() / target).lexically_normal();
    }
  }

  void add_wheels_of_interpreters() {
    for (const char* variable : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
      for (const auto& folder : of_variable(variable)) add_prefix(folder);
    }
    for (const auto& folder : of_variable("PYTHONPATH")) add_wheels(folder);
    for (const auto& folder : path_) add_interpreter(folder / "python3");
    for (const auto& folder : of_variable("HOME")) add_prefix(folder / ".local");
    add_prefix(root_ / "usr/local");
    add_prefix(root_ / "usr");
  }

  fs::path file_;
  const Environment& environment_;
  fs::path root_;
  std::vector<fs::path> path_;
  std::vector<std::string> found_;
};

}  // namespace

std::vector<std::string> places_of_cuda_library(std::string_view file,
                                                const Environment& environment,
                                                const std::filesystem::path& system_root) {
  return Places(file, environment, system_root).all();
}

std::vector<std::string> places_of_cuda_library(std::string_view file) {
  return places_of_cuda_library(file, Environment::capture(environ), "/");
}

Result<OpenedLibrary> OpenedLibrary::open(const std::vector<std::string>& places,
                                          std::string_view what, std::string_view remedy) {
  std::vector<std::string> reasons;
  for (const auto& place : places) {
    void* const handle = ::dlopen(place.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle != nullptr) return OpenedLibrary(handle);
    reasons.emplace_back(::dlerror());
  }
  return Failure{ExitCode::topology,
                 format("cannot load {}: {}; {}", what, join(reasons, "; "), remedy)};
}

void* OpenedLibrary::address_of(const char* symbol) const {
  return ::dlsym(handle_, symbol);
}

Status OpenedLibrary::check_symbols(std::string_view name, int built_with) const {
  if (missing_.empty()) return {};
  return Failure{ExitCode::topology,
                 format("{} lacks {} (another version than {}?); install the one that this program "
                        "was built with",
                        name, join(missing_, ", "), built_with)};
}

std::string OpenedLibrary::path() const {
  const ::link_map* map = nullptr;
  if (::dlinfo(handle_, RTLD_DI_LINKMAP, static_cast<void*>(&map)) != 0) return {};
  return map->l_name;
}

}  // namespace trireme::base
