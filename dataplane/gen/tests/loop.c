/* SPDX-License-Identifier: Apache-2.0 */
/* Both ends in one thread, and what is said of its CPUs. */
#include <signal.h>
#include <sys/wait.h>

#include "support.h"

/* The object of one way: what comes after its name. */
static const char *way(const char *result, const char *name)
{
	const char *at = strstr(result, name);

	CHECK(at != NULL);
	return at;
}

static void null(void)
{
	struct child loop =
		START("loop", "--port", "null", "--to-port", "null", "--packets", "100000",
		      "--rate", "max", "--check", "--strict", "--size", "imix");
	char *r = child_result(&loop, 0);

	CHECK_EQ(json_number(r, "sender.sent"), 100000);
	CHECK_EQ(json_number(r, "sink.received"), 100000);
	CHECK_EQ(json_number(r, "one_way.n"), 100000);
	CHECK(strstr(r, "\"to_port\":\"null\"") && !strstr(r, "\"backward\""));
	free(r);
}

#define ENOUGH 5000

/* The result of a loop that has sent enough, most of it after the first 50 ms. */
static char *loop_at(const char *rate, const char *size)
{
	struct child loop =
		START("loop", "--port", "null", "--to-port", "null", "--interval", "50ms",
		      "--warmup", "1000", "--busy", "--rate", rate, "--size", size);
	double first = -1, later = 0;

	while (later <= ENOUGH || later <= first) {
		char *line = child_line(&loop);

		CHECK(line != NULL);
		if (first < 0)
			first = json_number(line, "sent");
		else
			later += json_number(line, "sent");
		free(line);
	}
	kill(loop.pid, SIGTERM);
	return child_result(&loop, 0);
}

/*
 * A rate that no port takes: the sender gives up most packets, sends as many as it can all the
 * same, each with the time at which it was due, and none that is too late.
 */
static void too_fast(const char *rate, const char *size)
{
	char *r = loop_at(rate, size);
	double scheduled = json_number(r, "sender.scheduled"), sent = json_number(r, "sent");

	CHECK(sent > ENOUGH && sent < scheduled);
	CHECK_EQ(json_number(r, "unsent"), scheduled - sent);
	CHECK_EQ(json_number(r, "sink.received"), sent);
	CHECK_EQ(json_number(r, "lateness.n"), sent);
	CHECK(json_number(r, "lateness.p50") > 9000000); /* not only at first */
	CHECK(json_number(r, "one_way_intended.min") >= json_number(r, "lateness.min"));
	free(r);
}

/* Each way has a stream of its own, and an account of its own. */
static void both_ways(const char *port, const char *to)
{
	struct child loop = START("loop", "--port", port, "--to-port", to, "--both", "--packets",
				  "500", "--warmup", "20", "--rate", "5kpps", "--catch-up", "60s",
				  "--interval", "20ms", "--strict");
	double sent = 0, received = 0;
	char *line;
	int status;

	while ((line = child_line(&loop)) && strstr(line, "\"event\":\"interval\"")) {
		sent += json_number(way(line, "\"forward\""), "sent") +
			json_number(way(line, "\"backward\""), "sent");
		received += json_number(way(line, "\"forward\""), "received") +
			    json_number(way(line, "\"backward\""), "received");
		free(line);
	}
	CHECK(line && sent > 0 && sent <= 1000 && received > 0 && received <= 1000);
	for (unsigned i = 0; i < 2; i++) {
		const char *w = way(line, i ? "\"backward\"" : "\"forward\"");

		CHECK_EQ(json_number(w, "sender.sent"), 500);
		CHECK_EQ(json_number(w, "sender.stream"), i + 1);
		CHECK_EQ(json_number(w, "sink.received"), 500);
		CHECK_EQ(json_number(w, "sink.warmup"), 20);
		CHECK_EQ(json_number(w, "sink.other_stream"), 0);
	}
	CHECK(json_true(line, "clean"));
	free(line);
	fclose(loop.out);
	CHECK(waitpid(loop.pid, &status, 0) == loop.pid && status == 0);
}

/* Two threads that never sleep, and one CPU. */
static void too_few_cpus(void)
{
	struct child sink =
		START("sink", "--port", "null", "--busy", "--beside", "1", "--duration", "50ms");
	char *r = child_result(&sink, 0);

	CHECK_EQ(json_number(r, "cpus.allowed"), 1);
	CHECK_EQ(json_number(r, "cpus.polling_threads"), 1);
	CHECK_EQ(json_number(r, "cpus.polling_beside"), 1);
	CHECK(json_true(r, "oversubscribed"));
	free(r);
	/* One that sleeps shares its CPU; what it waited for it then was little, or it says so. */
	sink = START("sink", "--port", "udp:127.0.0.1:0", "--beside", "1", "--duration", "100ms");
	r = child_result(&sink, 0);
	CHECK_EQ(json_number(r, "cpus.polling_threads"), 0);
	if (strstr(r, "\"waited_ns\"") &&
	    json_number(r, "cpus.waited_ns") < 0.04 * json_number(r, "wall_ns"))
		CHECK(!json_true(r, "oversubscribed"));
	free(r);
}

int main(int argc, char **argv)
{
	test_program(argc, argv);
	test_pin();
	null();
	too_fast("1Gpps", "60");
	too_fast("500Gbps", "98");
	too_fast("500Gbps", "imix");
	both_ways("udp:127.0.0.1:18231", "udp:127.0.0.1:18232");
	too_few_cpus();
	return 0;
}
