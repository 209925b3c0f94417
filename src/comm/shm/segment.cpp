// SPDX-License-Identifier: Apache-2.0
#include "comm/shm/segment.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace trireme::comm {
namespace {

/// Process and descriptor of the memory that position 0 has made, or errno of the call that failed.
struct Offer {
  std::int32_t process = 0;
  std::int32_t descriptor = -1;
  std::int32_t error_number = 0;
  /// Inode: distinguishes the memory from another file with this descriptor number.
  std::int32_t inode = 0;
};

std::int32_t inode_of(const base::File& file) {
  struct stat status {};
  return ::fstat(file.get(), &status) == 0 ? static_cast<std::int32_t>(status.st_ino) : -1;
}

device::Tensor words_of(Offer& offer) {
  return {&offer, device::DType::i32, {sizeof(Offer) / sizeof(std::int32_t)}};
}

std::pair<base::File, Offer> offer_memory(std::size_t bytes) {
  auto file = base::File::adopt(::memfd_create("trireme", MFD_CLOEXEC));
  Offer offer{::getpid(), file.get(), 0, inode_of(file)};
  if (!file || ::ftruncate(file.get(), static_cast<off_t>(bytes)) != 0) offer.error_number = errno;
  return {std::move(file), offer};
}

/// The offered memory through the file system of processes; errno in `error_number`.
base::File take_memory(const Offer& offer, std::int32_t& error_number) {
  const auto path = base::format("/proc/{}/fd/{}", offer.process, offer.descriptor);
  auto file = base::File::adopt(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (!file) {
    error_number = errno;
  } else if (inode_of(file) != offer.inode) {
    error_number = ESRCH;
  }
  return file;
}

}  // namespace

base::Result<std::unique_ptr<SharedMemory>> SharedMemory::create(ProcessGroup& group,
                                                                 std::size_t bytes) {
  base::File file;
  Offer offer;
  if (group.rank() == 0) std::tie(file, offer) = offer_memory(bytes);
  group.broadcast(words_of(offer), 0);
  std::int32_t error_number = offer.error_number;
  if (group.rank() != 0 && error_number == 0) file = take_memory(offer, error_number);
  void* data = MAP_FAILED;
  if (error_number == 0) {
    data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file.get(), 0);
    if (data == MAP_FAILED) error_number = errno;
  }
  // Synchronization: position 0 must not close its descriptor before every member has opened it.
  group.all_reduce({&error_number, device::DType::i32, {1}}, ReduceOp::max);
  if (error_number != 0) {
    if (data != MAP_FAILED) ::munmap(data, bytes);
    return base::Failure{
        base::ExitCode::topology,
        base::format("ranks of process group '{}' cannot share {} of memory: {}", group.name(),
                     base::bytes_text(bytes), std::strerror(error_number))};
  }
  // Advice only: huge pages save page faults and misses.
  ::madvise(data, bytes, MADV_HUGEPAGE);
  return std::unique_ptr<SharedMemory>(new SharedMemory(static_cast<std::byte*>(data), bytes));
}

SharedMemory::~SharedMemory() {
  ::munmap(data_, bytes_);
}

}  // namespace trireme::comm
