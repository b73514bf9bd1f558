/* SPDX-License-Identifier: Apache-2.0 */
/* Strict priority: the first class that waits sends next. Also the sharing of a single class. */
#include "scheduler.h"

static uint32_t strict_pick(struct scheduler *s, uint64_t now, uint64_t *wait)
{
	(void)now;
	*wait = bucket_wait(&s->root);
	if (*wait)
		return CLASS_NONE;
	for (uint32_t i = 0; i < s->plan.classes; i++)
		if (class_waits(&s->classes[i]))
			return i;
	return CLASS_NONE;
}

static void strict_charge(struct class *c, uint32_t bytes, uint64_t now)
{
	(void)now;
	bucket_charge(&c->scheduler->root, bytes);
}

const struct sharing strict_sharing = {
	.pick = strict_pick,
	.charge = strict_charge,
};
