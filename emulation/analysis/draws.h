#pragma once
// Many draws of one quantity whose rounding is random, a product or a gradient, against its exact value: how much of
// the error is bias, which stays, and how much is noise, which averages out. Knows no recipe and computes no product.

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "emulation/analysis/figure.h"

namespace halfulp {

// The mean of `draws` draws: |mean - exact|^2 / |exact|^2, over groups of draws that share none.
struct MeanError {
  std::size_t draws;
  std::size_t groups;
  double error;
  double se;
};

// The errors e_i = draw i - exact of R draws of d numbers. What is held fixed between draws (data, signs) decides of
// which bias the figures speak.
class Draws {
 public:
  // Zero for all draws until set. Takes R * d floats of memory. `row_length` is that of the quantity as a matrix.
  Draws(std::vector<double> exact, std::size_t draws, std::size_t row_length);

  std::size_t count() const { return draws_; }
  std::span<const double> exact() const { return exact_; }
  // Each draw by one thread; different ones at the same time.
  void set(std::size_t draw, std::span<const double> value);

  // Over tiles of 16 rows, which stand for other rows: the mean of |e|^2 / |exact|^2 and of e, over all draws.
  struct TileFigures {
    Figure error, mean_error;
  };
  TileFigures tile_figures() const;

  // What the draws say. Every figure is relative to |exact|^2. Computed once, after all draws are set.
  class Statistics;
  Statistics statistics(int threads) const;

 private:
  std::size_t draws_, row_length_;
  std::vector<double> exact_;
  std::vector<float> errors_;  // [R, d]
};

class Draws::Statistics {
 public:
  // `gram` holds <e_i, e_j> of R draws, `along` <e_i, exact>, both over |exact|^2.
  Statistics(std::vector<double> gram, std::size_t draws, std::vector<double> along);

  // |E e|^2 / |exact|^2: the U-statistic over pairs of different draws. Unbiased, so it may be negative. Its standard
  // error is that of a U-statistic of degree two, from the covariances of pairs that share one draw and both
  // (Hoeffding 1948), which holds where there is no bias too.
  Figure squared_bias() const;
  // E |e|^2 / |exact|^2 less that: what averages out as 1 / draws.
  Figure noise() const;
  // Mean of |e_i|^2 / |exact|^2: the error of one draw.
  Figure error() const;
  // Mean of <draw, exact> / <exact, exact>, 1 less the shrinkage; and of the cosine between them.
  Figure projection() const;
  Figure cosine() const;
  // |exact| / (sigma sqrt d): by the mean of a quadratic model of the loss, steps stop to help below sqrt 3
  // (arXiv:2505.19115).
  Figure gradient_to_noise() const;

  // For 1, 4, 16, ... draws, and for all of them.
  std::vector<MeanError> concentration() const;
  // d log error / d log draws of it: -1 where there is no bias, 0 where there is nothing else. Weighted least squares.
  Figure slope() const;

 private:
  double at(std::size_t i, std::size_t j) const { return gram_[i * draws_ + j]; }
  MeanError mean_error(std::size_t draws) const;
  double fitted_slope() const;
  Statistics without(std::size_t first, std::size_t count) const;
  Figure mean_of(const std::vector<double>& values, std::string_view unit) const;

  std::vector<double> gram_;
  std::size_t draws_;
  std::vector<double> along_;
};

}  // namespace halfulp
