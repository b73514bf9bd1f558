/* SPDX-License-Identifier: Apache-2.0 */
/* Where the time of a pair goes. */
#ifndef PMD_BENCH_PROFILE_H
#define PMD_BENCH_PROFILE_H

#include "pairs.h"

/* Lines for the reader: which functions of each process take how much of its time, by perf; or why that is not known. */
void profile_pair(const struct place *place, struct pair *pair, char *text, size_t size);

#endif
