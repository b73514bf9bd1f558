/* SPDX-License-Identifier: Apache-2.0 */
/* Requests and answers in the protocol of Redis (RESP,
 * https://redis.io/docs/reference/protocol-spec). */
#include "script.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/*
 * KEYS: the writer, then sessions. ARGV: number of the batch, seconds to keep all of it, then id,
 * packets and bytes of each session. Numbers rise, so they say whether a batch was counted before.
 */
static const char lua[] =
	"local again = tonumber(redis.call('GET', KEYS[1]) or 0) >= tonumber(ARGV[1]) "
	"local answers = {} "
	"for i = 2, #KEYS do "
	"local key, a = KEYS[i], 3 * i - 3 "
	"local ok, id, packets = pcall(function() "
	"redis.call('HSETNX', key, 'id', ARGV[a]) "
	"if not again then "
	"redis.call('HINCRBY', key, 'packets', ARGV[a + 1]) "
	"redis.call('HINCRBY', key, 'bytes', ARGV[a + 2]) "
	"local before = redis.call('HGET', key, 'worker') "
	"if before ~= KEYS[1] then "
	"redis.call('HSET', key, 'worker', KEYS[1]) "
	"redis.call('HINCRBY', key, 'moves', before and 1 or 0) "
	"end "
	"end "
	"redis.call('EXPIRE', key, ARGV[2]) "
	"return redis.call('HGET', key, 'id'), redis.call('HGET', key, 'packets') "
	"end) "
	"answers[i - 1] = ok and id .. ' ' .. packets or '0 0' "
	"end "
	"if not again then redis.call('SET', KEYS[1], ARGV[1], 'EX', ARGV[2]) end "
	"return table.concat(answers, ' ')";

/* Only strings are sent: "$LENGTH\r\nBYTES\r\n". What would not fit is cut; SCRIPT_OUT has room. */
__attribute__((format(printf, 2, 3))) static void put(struct script *s, const char *format, ...)
{
	uint32_t room = SCRIPT_OUT - s->bytes;
	va_list arguments;
	int n;

	va_start(arguments, format);
	n = vsnprintf(s->text + s->bytes, room, format, arguments);
	va_end(arguments);
	s->bytes += (uint32_t)n < room ? (uint32_t)n : room - 1;
}

static void put_string(struct script *s, const char *text)
{
	put(s, "$%zu\r\n%s\r\n", strlen(text), text);
}

static void put_number(struct script *s, uint64_t number)
{
	char text[24];

	snprintf(text, sizeof(text), "%" PRIu64, number);
	put_string(s, text);
}

void script_begin(struct script *s, unsigned n, uint64_t writer)
{
	char text[32];

	s->bytes = 0;
	put(s, "*%u\r\n", 3 + (1 + n) + 2 + 3 * n);
	put_string(s, "EVAL");
	put_string(s, lua);
	put_number(s, 1 + n);
	snprintf(text, sizeof(text), "worker:%016" PRIx64, writer);
	put_string(s, text);
}

void script_key(struct script *s, const struct flow_key *key)
{
	char text[8 + FLOW_TEXT] = "session:";

	flow_text(key, text + 8);
	put_string(s, text);
}

void script_batch(struct script *s, uint64_t number, uint64_t seconds)
{
	put_number(s, number);
	put_number(s, seconds);
}

void script_values(struct script *s, uint64_t id, uint64_t packets, uint64_t bytes)
{
	char text[24];

	snprintf(text, sizeof(text), "%016" PRIx64, id);
	put_string(s, text);
	put_number(s, packets);
	put_number(s, bytes);
}

struct cursor {
	const char *at, *end;
};

/* Digits of a number in a base, which may not be empty or too large. */
static bool take_number(struct cursor *c, unsigned base, uint64_t *number)
{
	const char *first = c->at;

	*number = 0;
	for (; c->at < c->end; c->at++) {
		char d = *c->at;
		unsigned digit = d >= '0' && d <= '9'	? (unsigned)(d - '0')
				 : d >= 'a' && d <= 'f' ? (unsigned)(d - 'a') + 10
							: 16;

		if (digit >= base)
			break;
		if (*number > (UINT64_MAX - digit) / base)
			return false;
		*number = *number * base + digit;
	}
	return c->at > first;
}

static bool take(struct cursor *c, const char *text)
{
	size_t n = strlen(text);

	if ((size_t)(c->end - c->at) < n || memcmp(c->at, text, n) != 0)
		return false;
	c->at += n;
	return true;
}

static int wrong(const char **error, const char *what)
{
	*error = what;
	return -1;
}

static int parse_items(struct cursor c, unsigned n, struct script_answer *answers,
		       const char **error)
{
	for (unsigned i = 0; i < n; i++)
		if ((i && !take(&c, " ")) || !take_number(&c, 16, &answers[i].id) ||
		    !take(&c, " ") || !take_number(&c, 10, &answers[i].total))
			return wrong(error, "an answer without an id and a total for each session");
	return c.at == c.end ? 1 : wrong(error, "an answer for more sessions than were asked for");
}

int script_parse(const char *in, uint32_t bytes, unsigned n, struct script_answer *answers,
		 const char **error)
{
	struct cursor c = {in, in + bytes};
	uint64_t length;

	if (!memchr(in, '\n', bytes))
		return bytes < SCRIPT_IN ? 0 : wrong(error, "a line without an end");
	if (*in == '-')
		return wrong(error, in + 1);
	if (!take(&c, "$") || !take_number(&c, 10, &length) || length > SCRIPT_IN - 64 ||
	    !take(&c, "\r\n"))
		return wrong(error, "something else than a string");
	if ((uint64_t)(c.end - c.at) < length + 2)
		return 0;
	if (c.at[length] != '\r' || (uint64_t)(c.end - c.at) != length + 2)
		return wrong(error, "more than was asked for");
	c.end = c.at + length;
	return parse_items(c, n, answers, error);
}
