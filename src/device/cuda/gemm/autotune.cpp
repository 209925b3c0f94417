// Which of the library's algorithms computes a product: the fastest that a card has shown.
#include "device/cuda/gemm/plan.hpp"
#include "device/cuda/gemm/scratch.hpp"

#include <algorithm>
#include <limits>

namespace trireme::device::cuda {
namespace {

constexpr int rounds = 5;

}  // namespace

int Products::choose(std::span<const ProductCall> calls) {
  int made = 0;
  for (const auto& call : calls) {
    if (call.x.element_count() == 0 || call.result.element_count() == 0) continue;
    if (choose_form(forms_of(call)) == Choice::made) ++made;
  }
  return made;
}

std::optional<Products::Timed> Products::timed(const MatrixProduct& product) {
  Plan plan;
  describe(product, plan);
  const auto all = ways(product, plan);
  if (all.empty()) return std::nullopt;
  ProductScratch scratch(product, stream_);
  const ProductWork work{product, scratch.operands()};
  std::vector<double> best(all.size(), std::numeric_limits<double>::infinity());
  const auto seconds_of = [&](std::size_t index) {
    const double seconds =
        scratch.seconds_of([&] { check(issue(plan, all[index], work), "cublasLtMatmul"); });
    best[index] = std::min(best[index], seconds);
    return seconds;
  };
  const auto way = fastest(all.size(), seconds_of, rounds);
  if (way < 0) return std::nullopt;
  const auto index = static_cast<std::size_t>(way);
  return Timed{all[index], best[index]};
}

Products::Choice Products::choose(const MatrixProduct& product) {
  if (choices_.find(product.text()) != nullptr) return Choice::known;
  const auto way = timed(product);
  if (!way) return Choice::not_offered;
  choices_.add(product.text(), way->algorithm);
  plans_.erase(product);
  return Choice::made;
}

Products::Choice Products::choose_form(std::span<const ProductCall> forms) {
  const auto product = work_of(forms.front()).product;
  const auto rest = forms.subspan(1);
  if (const auto* const known = choices_.find(product.text())) {
    return *known == declined && !rest.empty() ? choose_form(rest) : Choice::known;
  }
  if (rest.empty()) return choose(product);
  if (!can_go_without(product.epilogue)) {
    const auto outcome = choose(product);
    return outcome == Choice::not_offered ? choose_form(rest) : outcome;
  }
  const auto whole = timed(product);
  if (!whole) return choose_form(rest);
  const auto apart = work_of(rest.front()).product;
  const auto alone = timed(apart);
  plans_.erase(product);
  if (!alone || epilogue_pays(product, whole->seconds, alone->seconds)) {
    choices_.add(product.text(), whole->algorithm);
    return Choice::made;
  }
  choices_.add(product.text(), declined);
  choices_.add(apart.text(), alone->algorithm);
  plans_.erase(apart);
  return Choice::made;
}

base::Status Products::adopt(std::span<const std::string> texts) {
  plans_.clear();
  return choices_.adopt(texts);
}

}  // namespace trireme::device::cuda
