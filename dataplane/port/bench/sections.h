/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of a run. Each adds its figures. */
#ifndef DRAY_BENCH_SECTIONS_H
#define DRAY_BENCH_SECTIONS_H

#include "broker.h"

struct profile {
	unsigned rounds, kills;
	int quick;
};

struct broker_options bench_shape(uint32_t mtu);

void section_rates(const struct profile *profile);
void section_instructions(void);
void section_adaptive(const struct profile *profile);
void section_set_up(const struct profile *profile);

/* -1: something was lost, or leaked. */
int section_kills(const struct profile *profile);

#endif
