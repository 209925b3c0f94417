#include "checkpoint/tiling.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

namespace trireme::checkpoint {
namespace {

base::Failure failure(std::string text) {
  return {base::ExitCode::checkpoint, std::move(text)};
}

bool is_name_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '.' || letter == '_' || letter == '-' ||
         letter == ':' || letter == '+';
}

/// Names of untrusted origin are shown short and without control characters.
std::string shown(std::string_view name) {
  std::string text;
  for (const char letter : name.substr(0, 80)) {
    text += letter >= ' ' && letter <= '~' ? letter : '?';
  }
  return name.size() > 80 ? text + "…" : text;
}

bool inside(const layout::Box& box, const layout::Shape& shape) {
  if (box.offset.size() != shape.size() || box.length.size() != shape.size()) return false;
  for (std::size_t index = 0; index < shape.size(); ++index) {
    if (box.offset[index] < 0 || box.length[index] < 1 || box.offset[index] > shape[index] ||
        box.length[index] > shape[index] - box.offset[index]) {
      return false;
    }
  }
  return true;
}

/// The dimension along which a sweep meets the fewest boxes at once.
std::size_t sweep_dimension(std::span<const layout::Box> boxes, std::size_t dimensions) {
  std::size_t best = 0;
  std::size_t most = 0;
  for (std::size_t index = 0; index < dimensions; ++index) {
    std::set<std::int64_t> offsets;
    for (const auto& box : boxes) offsets.insert(box.offset[index]);
    if (offsets.size() > most) {
      most = offsets.size();
      best = index;
    }
  }
  return best;
}

base::Status check_no_overlap(std::string_view name, std::span<const layout::Box> boxes,
                              std::size_t dimensions) {
  const auto along = sweep_dimension(boxes, dimensions);
  std::vector<const layout::Box*> order;
  for (const auto& box : boxes) order.push_back(&box);
  std::sort(order.begin(), order.end(),
            [along](const auto* a, const auto* b) { return a->offset[along] < b->offset[along]; });
  std::vector<const layout::Box*> open;
  for (const auto* box : order) {
    std::erase_if(open, [&](const auto* other) {
      return other->offset[along] + other->length[along] <= box->offset[along];
    });
    for (const auto* other : open) {
      if (layout::intersect(*box, *other)) {
        return failure(base::format("tensor '{}': boxes {} and {} overlap", name,
                                    layout::text(*other), layout::text(*box)));
      }
    }
    open.push_back(box);
  }
  return {};
}

}  // namespace

base::Status check_name(std::string_view name) {
  if (name.empty() || name.size() > max_name_length) {
    return failure(base::format("tensor name '{}' has {} characters (1 to {} are allowed)",
                                shown(name), name.size(), max_name_length));
  }
  std::string_view rest = name;
  for (bool first = true;; first = false) {
    const auto slash = rest.find('/');
    const auto part = rest.substr(0, slash);
    if (part.empty() || part == "." || part == ".." || part.starts_with("at_") ||
        (first && part == "small_tensors") ||
        !std::all_of(part.begin(), part.end(), is_name_letter)) {
      return failure(base::format(
          "tensor name '{}' is not allowed (parts of letters, digits and ._-:+ joined by '/', "
          "none empty, '.', '..' or beginning with 'at_', the first not 'small_tensors')",
          shown(name)));
    }
    if (slash == std::string_view::npos) return {};
    rest.remove_prefix(slash + 1);
  }
}

base::Status check_shape(std::string_view name, const layout::Shape& shape) {
  if (shape.empty() || shape.size() > max_dimensions) {
    return failure(base::format("tensor '{}' has {} dimensions (1 to {} are allowed)", name,
                                shape.size(), max_dimensions));
  }
  std::int64_t rest = std::int64_t{1} << 60;
  for (const auto length : shape) {
    if (length < 1 || length > rest) {
      return failure(
          base::format("tensor '{}' has shape [{}] (lengths must be positive and their "
                       "product below 2^60)",
                       name, base::join(shape, ", ")));
    }
    rest /= length;
  }
  return {};
}

base::Status check_tiling(std::string_view name, const layout::Shape& shape,
                          std::span<const layout::Box> boxes) {
  if (boxes.size() > max_boxes_per_tensor) {
    return failure(base::format("tensor '{}' has {} boxes (at most {} are allowed)", name,
                                boxes.size(), max_boxes_per_tensor));
  }
  std::int64_t covered = 0;
  for (const auto& box : boxes) {
    if (!inside(box, shape)) {
      return failure(base::format("tensor '{}': a box does not lie inside the shape [{}]", name,
                                  base::join(shape, ", ")));
    }
  }
  if (auto status = check_no_overlap(name, boxes, shape.size()); !status) return status;
  for (const auto& box : boxes) covered += layout::element_count(box);
  const auto all = layout::element_count(shape);
  if (covered != all) {
    return failure(
        base::format("tensor '{}': its boxes hold {} of {} elements", name, covered, all));
  }
  return {};
}

}  // namespace trireme::checkpoint
