/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The vectors of the protocol, which every implementation passes: messages, refusals, geometries,
 * layout, descriptors, histogram.
 */
#include <errno.h>

#include "geometry.h"
#include "histogram.h"
#include "test.h"
#include "vectors.h"
#include "wire.h"

/* Where a field is: one table for messages and for layout. */
struct place {
	const char *owner, *name;
	size_t offset, size;
};

#define PLACE(owner, type, name)                                                                   \
	{                                                                                          \
		owner, #name, offsetof(type, name), sizeof(((type *)0)->name)                      \
	}

static const struct place places[] = {
	PLACE("header", struct wire_header, magic),
	PLACE("header", struct wire_header, version),
	PLACE("header", struct wire_header, type),
	PLACE("header", struct wire_header, length),
	PLACE("header", struct wire_header, generation),
	PLACE("hello", struct wire_hello, features),
	PLACE("hello", struct wire_hello, port),
	PLACE("hello", struct wire_hello, queues),
	PLACE("hello", struct wire_hello, mode),
	PLACE("hello", struct wire_hello, clock),
	PLACE("hello", struct wire_hello, flags),
	PLACE("hello", struct wire_hello, tick_hz),
	PLACE("hello", struct wire_hello, reserved),
	PLACE("welcome", struct wire_welcome, features),
	PLACE("welcome", struct wire_welcome, port),
	PLACE("welcome", struct wire_welcome, mac),
	PLACE("welcome", struct wire_welcome, ip4_prefix),
	PLACE("welcome", struct wire_welcome, ip6_prefix),
	PLACE("welcome", struct wire_welcome, ip4),
	PLACE("welcome", struct wire_welcome, mtu),
	PLACE("welcome", struct wire_welcome, ip6),
	PLACE("welcome", struct wire_welcome, queues),
	PLACE("welcome", struct wire_welcome, sample_shift),
	PLACE("welcome", struct wire_welcome, hold_quota),
	PLACE("welcome", struct wire_welcome, hold_policy),
	PLACE("welcome", struct wire_welcome, telemetry_size),
	PLACE("welcome", struct wire_welcome, flags),
	PLACE("welcome", struct wire_welcome, reserved),
	PLACE("geometry", struct geometry, size),
	PLACE("geometry", struct geometry, page_size),
	PLACE("geometry", struct geometry, queues),
	PLACE("geometry", struct geometry, ring_size),
	PLACE("geometry", struct geometry, pkt_slots),
	PLACE("geometry", struct geometry, pkt_stride),
	PLACE("geometry", struct geometry, pkt_headroom),
	PLACE("geometry", struct geometry, msg_slots),
	PLACE("geometry", struct geometry, msg_stride),
	PLACE("geometry", struct geometry, msg_headroom),
	PLACE("geometry", struct geometry, reserved),
	PLACE("offer", struct wire_offer, kind),
	PLACE("offer", struct wire_offer, side),
	PLACE("offer", struct wire_offer, peer_mode),
	PLACE("offer", struct wire_offer, queues),
	PLACE("offer", struct wire_offer, geometry),
	PLACE("offer", struct wire_offer, features),
	PLACE("offer", struct wire_offer, clock),
	PLACE("offer", struct wire_offer, reserved),
	PLACE("offer", struct wire_offer, geometry.size),
	PLACE("offer", struct wire_offer, geometry.page_size),
	PLACE("offer", struct wire_offer, geometry.queues),
	PLACE("offer", struct wire_offer, geometry.ring_size),
	PLACE("offer", struct wire_offer, geometry.pkt_slots),
	PLACE("offer", struct wire_offer, geometry.pkt_stride),
	PLACE("offer", struct wire_offer, geometry.pkt_headroom),
	PLACE("offer", struct wire_offer, geometry.msg_slots),
	PLACE("offer", struct wire_offer, geometry.msg_stride),
	PLACE("offer", struct wire_offer, geometry.msg_headroom),
	PLACE("offer", struct wire_offer, geometry.reserved),
	PLACE("mapped", struct wire_mapped, inode),
	PLACE("rebind", struct wire_rebind, reason),
	PLACE("rebind", struct wire_rebind, next),
	PLACE("stats", struct wire_stats, queues),
	PLACE("stats", struct wire_stats, reserved),
	PLACE("stats", struct wire_stats, counters),
	PLACE("bye", struct wire_bye, reason),
	PLACE("bye", struct wire_bye, reserved),
	PLACE("error", struct wire_error, code),
	PLACE("error", struct wire_error, about),
	PLACE("error", struct wire_error, text),
	PLACE("classes", struct wire_classes, scheduler),
	PLACE("classes", struct wire_classes, classes),
	PLACE("classes", struct wire_classes, rate),
	PLACE("classes", struct wire_classes, burst),
	PLACE("classes", struct wire_classes, reserved),
	PLACE("classes", struct wire_classes, reserved2),
	PLACE("classes", struct wire_classes, class),
	PLACE("class", struct wire_class, dscp),
	PLACE("class", struct wire_class, pcp),
	PLACE("class", struct wire_class, discipline),
	PLACE("class", struct wire_class, flags),
	PLACE("class", struct wire_class, priority),
	PLACE("class", struct wire_class, meta),
	PLACE("class", struct wire_class, rate),
	PLACE("class", struct wire_class, ceil),
	PLACE("class", struct wire_class, peak),
	PLACE("class", struct wire_class, peak_ns),
	PLACE("class", struct wire_class, limit),
	PLACE("class", struct wire_class, target_ns),
	PLACE("class", struct wire_class, interval_ns),
	PLACE("classed", struct wire_classed, error),
	PLACE("classed", struct wire_classed, reserved),
	PLACE("telemetry_class", struct telemetry_class, packets),
	PLACE("telemetry_class", struct telemetry_class, bytes),
	PLACE("telemetry_class", struct telemetry_class, dropped),
	PLACE("telemetry_class", struct telemetry_class, late),
	PLACE("telemetry_class", struct telemetry_class, marked),
	PLACE("telemetry_class", struct telemetry_class, queued),
	PLACE("telemetry_class", struct telemetry_class, queued_most),
	PLACE("telemetry_class", struct telemetry_class, queued_bytes),
	PLACE("telemetry_class", struct telemetry_class, longest_ns),
	PLACE("telemetry_header", struct telemetry_header, classes),
	PLACE("telemetry_header", struct telemetry_header, class),
	PLACE("capture", struct wire_capture, size),
	PLACE("capture", struct wire_capture, slots),
	PLACE("capture", struct wire_capture, slot_size),
	PLACE("capture", struct wire_capture, snaplen),
	PLACE("capture", struct wire_capture, queues),
	PLACE("capture", struct wire_capture, reserved),
	PLACE("captured", struct wire_captured, error),
	PLACE("captured", struct wire_captured, reserved),
	PLACE("lane_words", struct lane_words, tail),
	PLACE("lane_words", struct lane_words, newest_tail),
	PLACE("lane_words", struct lane_words, newest),
	PLACE("lane_words", struct lane_words, returned.value),
	PLACE("lane_words", struct lane_words, receiver_bell.value),
	PLACE("lane_words", struct lane_words, sender_bell.value),
	PLACE("descriptor", struct descriptor, place_length),
	PLACE("descriptor", struct descriptor, offset_flags_meta),
	PLACE("extension", struct extension, stamp),
	PLACE("extension", struct extension, hash_vlan),
	PLACE("telemetry_header", struct telemetry_header, magic),
	PLACE("telemetry_header", struct telemetry_header, version),
	PLACE("telemetry_header", struct telemetry_header, queues),
	PLACE("telemetry_header", struct telemetry_header, state),
	PLACE("telemetry_header", struct telemetry_header, generation),
	PLACE("telemetry_header", struct telemetry_header, clock),
	PLACE("telemetry_header", struct telemetry_header, tick_hz),
	PLACE("telemetry_header", struct telemetry_header, sample_shift),
	PLACE("telemetry_block", struct telemetry_block, counters),
	PLACE("telemetry_block", struct telemetry_block, depth),
	PLACE("telemetry_block", struct telemetry_block, reserved),
	PLACE("telemetry_block", struct telemetry_block, histogram),
	PLACE("capture_words", struct capture_words, tail),
	PLACE("capture_words", struct capture_words, reserved),
	PLACE("capture_words", struct capture_words, lost),
	PLACE("capture_words", struct capture_words, head),
	PLACE("capture_record", struct capture_record, time),
	PLACE("capture_record", struct capture_record, length),
	PLACE("capture_record", struct capture_record, captured),
	PLACE("capture_record", struct capture_record, flags),
	PLACE("capture_record", struct capture_record, meta),
	PLACE("capture_record", struct capture_record, reserved),
};

static const struct {
	const char *name;
	size_t size;
	unsigned type;
} structs[] = {
	{"hello", sizeof(struct wire_hello), WIRE_HELLO},
	{"welcome", sizeof(struct wire_welcome), WIRE_WELCOME},
	{"offer", sizeof(struct wire_offer), WIRE_OFFER},
	{"mapped", sizeof(struct wire_mapped), WIRE_MAPPED},
	{"sealed", 0, WIRE_SEALED},
	{"active", 0, WIRE_ACTIVE},
	{"rebind", sizeof(struct wire_rebind), WIRE_REBIND},
	{"stats", sizeof(struct wire_stats), WIRE_STATS},
	{"bye", sizeof(struct wire_bye), WIRE_BYE},
	{"error", sizeof(struct wire_error), WIRE_ERROR},
	{"header", sizeof(struct wire_header), 0},
	{"geometry", sizeof(struct geometry), 0},
	{"lane_words", sizeof(struct lane_words), 0},
	{"descriptor", sizeof(struct descriptor), 0},
	{"extension", sizeof(struct extension), 0},
	{"telemetry_header", sizeof(struct telemetry_header), 0},
	{"telemetry_block", sizeof(struct telemetry_block), 0},
	{"classes", sizeof(struct wire_classes), WIRE_CLASSES},
	{"class", sizeof(struct wire_class), 0},
	{"classed", sizeof(struct wire_classed), WIRE_CLASSES},
	{"telemetry_class", sizeof(struct telemetry_class), 0},
	{"capture", sizeof(struct wire_capture), WIRE_CAPTURE},
	{"captured", sizeof(struct wire_captured), WIRE_CAPTURE},
	{"capture_words", sizeof(struct capture_words), 0},
	{"capture_record", sizeof(struct capture_record), 0},
};

static unsigned struct_named(const char *name)
{
	size_t n = strcspn(name, "-");

	for (unsigned i = 0; i < sizeof(structs) / sizeof(*structs); i++)
		if (strlen(structs[i].name) == n && strncmp(structs[i].name, name, n) == 0)
			return i;
	fprintf(stderr, "no struct %s\n", name);
	_exit(1);
}

static const struct place *place_named(const char *owner, const char *name)
{
	for (unsigned i = 0; i < sizeof(places) / sizeof(*places); i++) {
		const char *end = strstr(places[i].name, ".value");
		size_t n = end ? (size_t)(end - places[i].name) : strlen(places[i].name);

		if (strcmp(places[i].owner, owner) == 0 && strlen(name) == n &&
		    strncmp(places[i].name, name, n) == 0)
			return &places[i];
	}
	fprintf(stderr, "no field %s of %s\n", name, owner);
	_exit(1);
}

static enum wire_sender sender_of(const struct block *b)
{
	return strcmp(block_value(b, "from"), "broker") == 0 ? FROM_BROKER : FROM_END;
}

static void set_counter(struct wire_stats *s, unsigned index, const char *value)
{
	s->counters[index] = strtoull(value, NULL, 0);
}

/* A field of a class is "class[I].NAME". */
static void set_class_field(struct wire_message *m, const char *name, const char *value)
{
	unsigned i = (unsigned)atoi(&name[strlen("class[")]);
	const struct place *p = place_named("class", strchr(name, '.') + 1);
	uint64_t number = strtoull(value, NULL, 0);

	CHECK(i < CLASSES_MAX);
	memcpy((uint8_t *)&m->classes.class[i] + p->offset, &number, p->size);
}

static void set_field(struct wire_message *m, const char *owner, const char *name,
		      const char *value)
{
	const struct place *p;
	uint64_t number = strtoull(value, NULL, 0);
	uint8_t *to;

	if (strncmp(name, "class[", strlen("class[")) == 0) {
		set_class_field(m, name, value);
		return;
	}
	p = place_named(owner, name);
	to = m->raw + p->offset;

	if (strcmp(name, "port") == 0 || strcmp(name, "text") == 0)
		strncpy((char *)to, value, p->size);
	else if (strcmp(name, "mac") == 0 || strcmp(name, "ip4") == 0 || strcmp(name, "ip6") == 0)
		CHECK_EQ(hex_decode(value, to, p->size), p->size);
	else
		memcpy(to, &number, p->size);
}

/* Encoding the fields gives the bytes, and the bytes are accepted. */
static void message(const struct block *b)
{
	unsigned which = struct_named(b->name), counters = 0;
	struct wire_message m, decoded = {0};
	uint8_t bytes[WIRE_MAX];
	size_t n = block_bytes(b, bytes, sizeof(bytes));

	wire_begin(&m, sender_of(b), structs[which].type, 0);
	for (unsigned i = 0; i < b->lines; i++) {
		const struct line *l = &b->line[i];

		if (strcmp(l->key, "field") != 0)
			continue;
		if (strcmp(l->name, "generation") == 0)
			m.header.generation = (uint32_t)strtoul(l->value, NULL, 0);
		else if (structs[which].type == WIRE_STATS && strcmp(l->name, "queues") &&
			 strcmp(l->name, "reserved"))
			set_counter(&m.stats, counters++, l->value);
		else
			set_field(&m, structs[which].name, l->name, l->value);
	}
	if (n != wire_size(&m) || memcmp(bytes, &m, n) != 0)
		fprintf(stderr, "message %s\n", b->name);
	CHECK_EQ(n, wire_size(&m));
	CHECK_EQ(memcmp(bytes, &m, n), 0);
	memcpy(&decoded, bytes, n);
	CHECK_EQ(wire_check(&decoded, n, (unsigned)atoi(block_value(b, "fds")), sender_of(b)), 0);
}

static int errno_named(const char *name)
{
	static const struct {
		const char *name;
		int value;
	} names[] = {{"EPROTO", -EPROTO},
		     {"EPROTONOSUPPORT", -EPROTONOSUPPORT},
		     {"EMSGSIZE", -EMSGSIZE},
		     {"ignored", 1}};

	for (unsigned i = 0; i < 4; i++)
		if (strcmp(names[i].name, name) == 0)
			return names[i].value;
	_exit(1);
}

static void bad(const struct block *b)
{
	union {
		struct wire_message m;
		uint8_t bytes[2 * WIRE_MAX];
	} u = {0};
	size_t n = block_bytes(b, u.bytes, sizeof(u.bytes));
	int ret = wire_check(&u.m, n, (unsigned)atoi(block_value(b, "fds")), sender_of(b));

	if (ret != errno_named(block_value(b, "error")))
		fprintf(stderr, "case %s\n", b->name);
	CHECK_EQ(ret, errno_named(block_value(b, "error")));
}

static void check_derived(const struct block *b, const struct lane_offsets *o)
{
	const struct {
		const char *name;
		uint64_t value;
	} derived[] = {{"extensions", o->extensions}, {"completions", o->completions},
		       {"packets", o->packets},	      {"messages", o->messages},
		       {"lane_size", o->lane_size},   {"size", o->size}};
	unsigned seen = 0;

	for (unsigned i = 0; i < b->lines; i++) {
		if (strcmp(b->line[i].key, "derived") != 0)
			continue;
		CHECK(strcmp(b->line[i].name, derived[seen].name) == 0);
		CHECK_EQ(strtoull(b->line[i].value, NULL, 0), derived[seen].value);
		seen++;
	}
	CHECK_EQ(seen, 6);
}

static void geometry(const struct block *b)
{
	struct geometry g = {0};
	struct lane_offsets o;
	bool wrong = block_value(b, "error") != NULL;
	int ret;

	for (unsigned i = 0; i < b->lines; i++) {
		if (strcmp(b->line[i].key, "field") == 0) {
			uint32_t value = (uint32_t)strtoul(b->line[i].value, NULL, 0);

			memcpy((uint8_t *)&g + place_named("geometry", b->line[i].name)->offset,
			       &value, sizeof(value));
		}
	}
	ret = geometry_derive(&g, &o);
	if (ret != (wrong ? -EINVAL : 0))
		fprintf(stderr, "geometry %s\n", b->name);
	CHECK_EQ(ret, wrong ? -EINVAL : 0);
	if (wrong)
		return;
	check_derived(b, &o);
	g.size = o.size;
	CHECK_EQ(geometry_check(&g, &o), 0);
	g.size--;
	CHECK_EQ(geometry_check(&g, &o), -EINVAL);
}

static void layout(const struct block *b)
{
	CHECK_EQ(structs[struct_named(b->name)].size, atoi(b->rest));
	for (unsigned i = 0; i < b->lines; i++) {
		/* field OFFSET SIZE NAME */
		const struct line *l = &b->line[i];
		char name[32];
		unsigned size;
		const struct place *p;

		CHECK_EQ(sscanf(l->value, "%u %31s", &size, name), 2);
		p = place_named(b->name, name);
		CHECK_EQ(p->offset, atoi(l->name));
		CHECK_EQ(p->size, size);
	}
}

static void descriptor(const struct block *b)
{
	uint64_t v[6], words[2];
	uint8_t bytes[16];

	CHECK_EQ(block_bytes(b, bytes, sizeof(bytes)), 16);
	for (unsigned i = 0; i < 6; i++)
		v[i] = strtoull(b->line[i].value, NULL, 0);
	words[0] = v[0] | v[1] << PLACE_SLOT_BITS | v[2] << 32;
	words[1] = v[3] | v[4] << 16 | v[5] << 32;
	CHECK_EQ(memcmp(words, bytes, 16), 0);
}

static void histogram(const char *path)
{
	FILE *f = fopen(path, "r");
	unsigned long long value;
	unsigned index, seen = 0;
	char line[256];

	CHECK(f != NULL);
	while (fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llu %u", &value, &index) != 2)
			continue;
		CHECK_EQ(histogram_index(value), index);
		CHECK(index < HISTOGRAM_SIZE);
		seen++;
	}
	fclose(f);
	CHECK(seen > 50);
}

int main(int argc, char **argv)
{
	char path[512];

	CHECK_EQ(argc, 2);
	CHECK(for_each_block(argv[1], "messages.txt", "message", message) > 10);
	CHECK(for_each_block(argv[1], "bad.txt", "case", bad) > 40);
	CHECK(for_each_block(argv[1], "geometry.txt", "geometry", geometry) > 25);
	CHECK(for_each_block(argv[1], "layout.txt", "struct", layout) > 10);
	CHECK(for_each_block(argv[1], "descriptors.txt", "descriptor", descriptor) >= 3);
	snprintf(path, sizeof(path), "%s/histogram.txt", argv[1]);
	histogram(path);
	return 0;
}
