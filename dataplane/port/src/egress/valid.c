/* SPDX-License-Identifier: Apache-2.0 */
/* Whether a CLASSES message can be followed: PROTOCOL.md, section 12. */
#include <string.h>

#include "scheduler.h"

#define RATE_LEAST 8u /* bit/s */
#define BYTES_LEAST 64u
#define LIMIT_MOST 65536u /* packets */
#define SLOT_LEAST 1000u  /* ns */
#define KNOWN_FLAGS (CLASS_META | CLASS_ECN | CLASS_REALTIME)

static bool rate_valid(uint64_t rate)
{
	return rate >= RATE_LEAST && rate <= CLASS_RATE_MAX;
}

/* The rates of a class that its scheduler does not grant are 0. */
static bool no_rates(const struct wire_class *c)
{
	return c->rate == 0 && c->ceil == 0 && c->peak == 0 && c->peak_ns == 0;
}

static bool htb_valid(const struct wire_class *c)
{
	return rate_valid(c->rate) && rate_valid(c->ceil) && c->ceil >= c->rate &&
	       c->peak >= BYTES_LEAST && c->peak <= UINT32_MAX && c->peak_ns == 0;
}

static bool hfsc_valid(const struct wire_class *c)
{
	if (!rate_valid(c->rate) || (c->ceil && (!rate_valid(c->ceil) || c->ceil < c->rate)))
		return false;
	return c->peak_ns ? rate_valid(c->peak) : c->peak == 0;
}

static bool shares_valid(const struct wire_class *c, uint32_t scheduler)
{
	if (scheduler == SCHEDULER_HTB)
		return htb_valid(c);
	if (scheduler == SCHEDULER_HFSC)
		return hfsc_valid(c);
	return no_rates(c);
}

static bool discipline_valid(const struct wire_class *c)
{
	switch (c->discipline) {
	case DISCIPLINE_BFIFO:
		return c->limit >= BYTES_LEAST && !c->target_ns && !c->interval_ns;
	case DISCIPLINE_PFIFO:
	case DISCIPLINE_SFQ:
		return c->limit <= LIMIT_MOST && !c->target_ns && !c->interval_ns;
	case DISCIPLINE_CODEL:
	case DISCIPLINE_FQ_CODEL:
		return c->limit <= LIMIT_MOST && c->target_ns && c->interval_ns >= c->target_ns;
	default:
		return c->limit <= LIMIT_MOST && c->target_ns >= SLOT_LEAST &&
		       c->interval_ns < c->target_ns;
	}
}

static bool flags_valid(const struct wire_class *c)
{
	bool codel = c->discipline == DISCIPLINE_CODEL || c->discipline == DISCIPLINE_FQ_CODEL;

	return (c->flags & ~KNOWN_FLAGS) == 0 && (!(c->flags & CLASS_ECN) || codel) &&
	       (!(c->flags & CLASS_REALTIME) || c->discipline == DISCIPLINE_SLOT) &&
	       ((c->flags & CLASS_META) || c->meta == 0);
}

static bool class_valid(const struct wire_class *c, uint32_t scheduler)
{
	return c->discipline < DISCIPLINES && c->limit > 0 && discipline_valid(c) &&
	       flags_valid(c) && shares_valid(c, scheduler) && c->priority < 8 &&
	       (c->priority == 0 || scheduler == SCHEDULER_HTB);
}

static bool root_valid(const struct wire_classes *plan)
{
	bool needs_rate = plan->scheduler == SCHEDULER_HTB || plan->scheduler == SCHEDULER_HFSC;

	if (plan->scheduler > SCHEDULER_HFSC || plan->reserved || plan->reserved2)
		return false;
	if (plan->rate ? !rate_valid(plan->rate) || plan->burst < BYTES_LEAST : plan->burst != 0)
		return false;
	return (plan->rate || !needs_rate) && plan->classes >= 1 && plan->classes <= CLASSES_MAX &&
	       (plan->classes == 1 || plan->scheduler != SCHEDULER_NONE);
}

bool classes_valid(const struct wire_classes *plan)
{
	static const struct wire_class none;

	if (!root_valid(plan))
		return false;
	for (uint32_t i = 0; i < CLASSES_MAX; i++) {
		const struct wire_class *c = &plan->class[i];

		if (i < plan->classes ? !class_valid(c, plan->scheduler)
				      : memcmp(c, &none, sizeof(none)) != 0)
			return false;
	}
	return true;
}
