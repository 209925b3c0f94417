// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

// Debian's liblapack-dev has no header for C++ (LAPACKE is a layer of copies above), so the Fortran
// routines are declared here as gfortran calls them: each argument by address, and behind them the
// lengths of texts.
// NOLINTBEGIN(readability-identifier-naming): gfortran's names
extern "C" {
void ssyevd_(const char* jobz, const char* uplo, const int* n, float* a, const int* lda, float* w,
             float* work, const int* lwork, int* iwork, const int* liwork, int* info,
             std::size_t jobz_length, std::size_t uplo_length);
void dsyevd_(const char* jobz, const char* uplo, const int* n, double* a, const int* lda, double* w,
             double* work, const int* lwork, int* iwork, const int* liwork, int* info,
             std::size_t jobz_length, std::size_t uplo_length);
void sgeqrf_(const int* m, const int* n, float* a, const int* lda, float* tau, float* work,
             const int* lwork, int* info);
void sorgqr_(const int* m, const int* n, const int* k, float* a, const int* lda, const float* tau,
             float* work, const int* lwork, int* info);
}
// NOLINTEND(readability-identifier-naming)
