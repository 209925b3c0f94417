#include "data/mapped_file.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <cerrno>

namespace trireme::data {

std::optional<std::string> MappingTraits::close(const Mapping& mapping) {
  if (::munmap(mapping.address, mapping.length) == 0) return std::nullopt;
  return std::string(std::strerror(errno));
}

base::Result<MappedFile> MappedFile::open(const std::filesystem::path& path) {
  constexpr auto code = base::ExitCode::checkpoint;
  const auto file = base::open_file(path, O_RDONLY, 0, code);
  if (!file) return file.failure();
  struct stat facts {};
  if (::fstat(file->get(), &facts) != 0) {
    return base::Failure{
        code, base::format("cannot examine '{}': {}", path.string(), std::strerror(errno))};
  }
  if (!S_ISREG(facts.st_mode)) {
    return base::Failure{
        code, base::format("'{}' is not a plain file (tokens are memory-mapped); name the "
                           "prefix of a token file",
                           path.string())};
  }
  MappedFile mapped;
  if (facts.st_size == 0) return mapped;
  const auto length = static_cast<std::size_t>(facts.st_size);
  void* address = ::mmap(nullptr, length, PROT_READ, MAP_SHARED, file->get(), 0);
  if (address == MAP_FAILED) {
    return base::Failure{code,
                         base::format("cannot map '{}': {}", path.string(), std::strerror(errno))};
  }
  mapped.mapping_ = base::UniqueHandle<MappingTraits>::adopt({address, length});
  return mapped;
}

}  // namespace trireme::data
