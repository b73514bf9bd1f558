/* SPDX-License-Identifier: Apache-2.0 */
/* What is measured: the rows of the tables, and what they should reach. */
#ifndef PMD_BENCH_ROWS_H
#define PMD_BENCH_ROWS_H

#include <stdbool.h>

#include "pairs.h"

/* Start all pairs, and pause them. `bare`: dray-bench, or NULL. */
void rows_start(struct place *place, const char *bare);

/* All of them once, begun with another each round. False: time ran out before it was finished. */
bool rows_measure(unsigned round);

/* Hold them against their targets; `profiles`: and look where the time goes of those that miss. */
void rows_judge(bool profiles);

void rows_end(void);

/* For a signal handler: have the container go. */
void rows_interrupted(void);

#endif
