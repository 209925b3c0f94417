#pragma once

#include "trireme/device/arena.hpp"
#include "trireme/device/tensor.hpp"

#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

namespace trireme::device {

/// A place in the order of a device's work.
class Event {
 public:
  class Point {
   public:
    virtual ~Point() = default;
    /// Without blocking.
    virtual bool passed() = 0;
    virtual void wait() = 0;
  };

  /// Passed already.
  Event() = default;
  explicit Event(std::unique_ptr<Point> point) : point_(std::move(point)) {}

  bool passed() {
    if (point_ && point_->passed()) point_.reset();
    return !point_;
  }
  /// Blocks the host until all work issued before the event is done.
  void wait() {
    if (point_) point_->wait();
    point_.reset();
  }

 private:
  std::unique_ptr<Point> point_;
};

/// A stream beside a device's own, for work that a library issues there by itself; the work of both
/// runs at once.
class SideStream {
 public:
  virtual ~SideStream() = default;
  /// As such a library calls it: a card's cudaStream_t.
  virtual void* handle() = 0;
  /// What is issued here from now on begins after all that was issued to the device until now.
  virtual void follow() = 0;
  /// A place in the order of this stream.
  virtual Event record() = 0;
};

/// Where kernels find their tensors, and the one stream on which their work and copies run, in the
/// order of their issue. On the host's own memory every call is done when it returns. On any other
/// device the host must not follow a tensor's pointer: what it gives is copied in, what it takes is
/// copied out and waited for. Outlives its arenas and events. One thread at a time.
class Device {
 public:
  virtual ~Device() = default;
  /// "host", "card 0000:1b:00.0".
  virtual const char* name() const = 0;
  /// Whether the host may follow pointers into the device's arenas.
  virtual bool is_host() const = 0;

  /// One block of exactly this many bytes. What it holds at first is undefined but on the host,
  /// where it is zero.
  virtual Arena arena(Purpose purpose, std::size_t capacity_bytes) = 0;
  /// Host memory that copies run from and to without the host's help.
  virtual Arena staging(Purpose purpose, std::size_t capacity_bytes) = 0;

  /// Issues a copy between host memory and a contiguous tensor. The host's side stays as it is, and
  /// is not read, until an event recorded later has passed.
  virtual void copy_in(const void* from, const Tensor& to) = 0;
  virtual void copy_out(const Tensor& from, void* to) = 0;
  virtual Event record() = 0;
  /// Of a device's memory, what all programs there have taken, this one's arenas and contexts among
  /// it; 0 on the host.
  virtual std::size_t taken_bytes() { return 0; }
  /// All work issued so far is done when this returns; that of side streams may be under way.
  virtual void synchronize() = 0;
  /// Nothing on the host, where work is done when it is issued. The device outlives it.
  virtual std::unique_ptr<SideStream> side_stream() = 0;
};

/// The host's own memory.
Device& host_device();

/// What callers of copies owe; a breach is a defect of Trireme (ExitCode::internal).
void expect_contiguous(const Tensor& x);

/// Where the host finds or leaves the values of tensors of a device: in the tensors themselves
/// where it may follow them, else in host memory beside them.
class HostMirror {
 public:
  explicit HostMirror(Device& device) : device_(device) {}

  /// The host's view of a contiguous tensor; zeros at first unless it is the tensor itself. Valid
  /// as long as this object.
  Tensor of(const Tensor& x);
  /// The host's views take the tensors' values, once all work issued so far is done.
  void fetch();
  /// The tensors take the values of the host's views; done when this returns.
  void store();

 private:
  struct Pair {
    Tensor there;
    Tensor here;
  };

  Device& device_;
  std::vector<Pair> pairs_;
  std::vector<std::unique_ptr<std::byte[]>> blocks_;
};

}  // namespace trireme::device
