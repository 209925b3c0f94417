// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/steps/hold.hpp"

#include "trireme/store/object_store.hpp"

#include <fcntl.h>

#include <cerrno>

namespace trireme::checkpoint {
namespace {

/// 0, or the error of a lock that does not wait.
int try_lock(const base::File& file, short type) {
  struct flock whole {};
  whole.l_type = type;
  whole.l_whence = SEEK_SET;
  while (::fcntl(file.get(), F_OFD_SETLK, &whole) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

std::shared_ptr<const base::File> hold_step(const std::filesystem::path& step_folder) {
  if (store::is_url(step_folder)) return nullptr;
  auto file = base::open_file(step_folder / "manifest.json", O_RDONLY | O_NOFOLLOW | O_NONBLOCK);
  if (!file || try_lock(*file, F_RDLCK) != 0) return nullptr;
  return std::make_shared<const base::File>(std::move(file).value());
}

bool is_held(const std::filesystem::path& step_folder) {
  const auto file =
      base::open_file(step_folder / "manifest.json", O_RDWR | O_NOFOLLOW | O_NONBLOCK);
  if (!file) return false;
  const int error = try_lock(*file, F_WRLCK);
  return error == EAGAIN || error == EACCES;
}

}  // namespace trireme::checkpoint
