/* SPDX-License-Identifier: Apache-2.0 */
/* The fronthaul's schedule and options. */
#include "fronthaul.h"

#include <stdlib.h>
#include <string.h>

#include "fields.h"
#include "frame.h"
#include "units.h"

#define US 1000u
#define PRB_MAX 273u /* of 100 MHz at 30 kHz */
#define PRB_BYTES 28u
#define LAYERS_MAX 16u /* RU ports of an eAxC ID with four bits of them */
#define VLAN_MAX 4094u
#define WINDOW_MAX 10000u /* us */
/* bytes before the first PRB: Ethernet, VLAN tag, eCPRI, message, application, and section */
#define U_HEADERS 34u

/*
 * The windows of the O-RAN software community's fronthaul library (o-du/phy, "xRAN library design",
 * tables 4 to 6), in us: C-plane, then U-plane.
 */
static const struct {
	uint32_t scs, t1a[2][2], t2a[2][2];
} usual[] = {
	{15, {{560, 800}, {280, 400}}, {{400, 1120}, {200, 1120}}},
	{30, {{285, 429}, {96, 196}}, {{285, 429}, {71, 428}}},
	{120, {{70, 100}, {35, 50}}, {{50, 140}, {25, 140}}},
};

enum field { F_SCS, F_PRB, F_LAYERS, F_VLAN, F_T1A_CP, F_T1A_UP, F_T2A_CP, F_T2A_UP };

static struct fronthaul_window window(const uint32_t us[2])
{
	return (struct fronthaul_window){(uint64_t)us[0] * US, (uint64_t)us[1] * US};
}

static bool read_window(char *text, struct fronthaul_window *w)
{
	char *dash = strchr(text, '-');
	uint32_t us[2];

	if (!dash)
		return false;
	*dash = '\0';
	if (!units_between(text, 0, WINDOW_MAX, &us[0]) ||
	    !units_between(dash + 1, 1, WINDOW_MAX, &us[1]) || us[0] >= us[1])
		return false;
	*w = window(us);
	return true;
}

static bool read_field(int field, char *value, void *to)
{
	struct fronthaul *f = to;

	switch (field) {
	case F_SCS:
		return units_between(value, 15, 120, &f->scs) &&
		       (f->scs == 15 || f->scs == 30 || f->scs == 60 || f->scs == 120);
	case F_PRB:
		return units_between(value, 1, PRB_MAX, &f->prb);
	case F_LAYERS:
		return units_between(value, 1, LAYERS_MAX, &f->layers);
	case F_VLAN:
		return units_between(value, 1, VLAN_MAX, &f->vlan);
	case F_T1A_CP:
	case F_T1A_UP:
		return read_window(value, &f->t1a[field - F_T1A_CP]);
	default:
		return read_window(value, &f->t2a[field - F_T2A_CP]);
	}
}

/* Windows that were not given are the usual ones. */
static const char *set_windows(struct fronthaul *f)
{
	for (unsigned i = 0; i < sizeof(usual) / sizeof(*usual); i++)
		for (unsigned plane = 0; usual[i].scs == f->scs && plane < FRONTHAUL_PLANES;
		     plane++) {
			if (f->t1a[plane].most_ns == 0)
				f->t1a[plane] = window(usual[i].t1a[plane]);
			if (f->t2a[plane].most_ns == 0)
				f->t2a[plane] = window(usual[i].t2a[plane]);
		}
	for (unsigned plane = 0; plane < FRONTHAUL_PLANES; plane++)
		if (f->t1a[plane].most_ns == 0 || f->t2a[plane].most_ns == 0)
			return "needs t1a-cp, t1a-up, t2a-cp and t2a-up: there are usual windows "
			       "of "
			       "15, 30 and 120 kHz only";
	return NULL;
}

static uint64_t symbol_ns(const struct fronthaul *f, uint32_t symbol)
{
	return symbol * f->slots.slot_ns / FRONTHAUL_SYMBOLS;
}

/* A group that is due so long before its symbol: in which period, and when in it. */
static struct fronthaul_group place(const struct fronthaul *f, enum fronthaul_plane plane,
				    uint32_t symbol)
{
	uint64_t before = f->t1a[plane].most_ns, after = symbol_ns(f, symbol);
	uint64_t ahead =
		before > after ? (before - after + f->slots.slot_ns - 1) / f->slots.slot_ns : 0;

	return (struct fronthaul_group){.plane = plane,
					.symbol = symbol,
					.ahead = ahead,
					.offset_ns = ahead * f->slots.slot_ns + after - before};
}

/* C-plane messages are first among those due at the same time. */
static int by_offset(const void *a, const void *b)
{
	const struct fronthaul_group *one = a, *other = b;

	if (one->offset_ns != other->offset_ns)
		return one->offset_ns < other->offset_ns ? -1 : 1;
	return (int)one->plane - (int)other->plane;
}

/* The schedule begins with the C-plane. */
static void set_slots(struct fronthaul *f)
{
	struct slots *s = &f->slots;

	s->groups = FRONTHAUL_GROUPS;
	s->burst = f->layers;
	for (uint32_t i = 0; i < s->groups; i++) {
		bool c_plane = f->groups[i].plane == FRONTHAUL_C;

		s->offset_ns[i] = f->groups[i].offset_ns;
		s->first = c_plane ? i : s->first;
		for (uint32_t k = 0; k < s->burst; k++)
			s->sizes[i * s->burst + k] =
				c_plane ? FRONTHAUL_C_FRAME : U_HEADERS + PRB_BYTES * f->prb;
	}
}

static void set_groups(struct fronthaul *f)
{
	uint32_t before[FRONTHAUL_PLANES] = {0};

	f->slots.slot_ns = slots_length(f->scs);
	f->groups[0] = place(f, FRONTHAUL_C, 0);
	for (uint32_t i = 0; i < FRONTHAUL_SYMBOLS; i++)
		f->groups[i + 1] = place(f, FRONTHAUL_U, i);
	qsort(f->groups, FRONTHAUL_GROUPS, sizeof(*f->groups), by_offset);
	for (uint32_t i = 0; i < FRONTHAUL_GROUPS; i++)
		f->groups[i].before = before[f->groups[i].plane]++;
	set_slots(f);
}

const char *fronthaul_read(const char *text, struct fronthaul *f)
{
	char *const names[] = {"scs",	 "prb",	   "layers", "vlan", "t1a-cp",
			       "t1a-up", "t2a-cp", "t2a-up", NULL};
	const char *wrong;

	*f = (struct fronthaul){.prb = PRB_MAX, .layers = 4, .vlan = 1};
	wrong = fields_read(text, names, read_field, f);
	if (!wrong && f->scs == 0)
		wrong = "lacks scs=15, 30, 60 or 120";
	if (!wrong)
		wrong = set_windows(f);
	if (!wrong)
		set_groups(f);
	return wrong;
}

uint64_t fronthaul_air(const struct fronthaul *f, const struct fronthaul_symbol *s)
{
	return s->slot * f->slots.slot_ns + symbol_ns(f, s->symbol);
}
