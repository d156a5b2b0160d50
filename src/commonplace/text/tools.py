"""Names of tools by what they are for.  Pure."""

from __future__ import annotations

import re

#: The name of a group is a subject: two facts about one group can replace each other.
TOOLS = {
    "package_manager": "npm pnpm yarn bun",
    "python_packages": "pip pipenv poetry uv conda pdm rye",
    "formatter": "prettier biome dprint",
    "python_formatter": "black yapf autopep8",
    "linter": "eslint flake8 pylint ruff oxlint clippy golangci-lint rubocop tslint stylelint",
    "test_framework": "jest vitest mocha jasmine",
    "python_tests": "pytest unittest nose",
    "browser_tests": "playwright cypress selenium",
    "database": "postgres postgresql mysql mariadb sqlite mongo mongodb duckdb cockroachdb oracle mssql dynamodb",
    "orm": "sqlalchemy prisma typeorm drizzle sequelize hibernate peewee asyncpg activerecord",
    "bundler": "webpack vite rollup esbuild parcel turbopack rspack",
    "ci": "jenkins circleci travis buildkite teamcity drone",
    "queue": "kafka rabbitmq nats celery sidekiq sqs pulsar zeromq",
    "cache": "redis memcached valkey dragonfly",
    "web_framework": "fastapi flask django express fastify nestjs rails laravel spring starlette gin axum actix hono",
    "frontend": "react vue svelte angular solid next nextjs nuxt remix astro preact sveltekit htmx",
    "state_library": "redux zustand mobx jotai recoil pinia",
    "validation": "zod pydantic joi yup marshmallow valibot",
    "date_library": "moment dayjs luxon date-fns",
    "infrastructure": "terraform pulumi ansible cloudformation helm kubernetes k8s nomad argocd argo",
    "charts": "d3 plotly matplotlib",
    "type_checker": "mypy pyright",
    "build": "bazel gradle maven cmake make meson ninja just nx turborepo sbt",
    "hosting": "aws gcp azure vercel netlify heroku fly cloudflare s3 cloudfront",
}
#: How questions name a group, besides its own name.
CALLED = {
    "test_framework": "test runner,testing framework,testing library", "database": "db,databases", "ci": "ci system",
    "queue": "message queue,message broker,broker", "frontend": "frontend framework,ui framework",
    "web_framework": "backend framework", "state_library": "state management", "validation": "validation library",
    "infrastructure": "infrastructure tool", "charts": "chart library,charting library",
    "build": "build tool,build system",
    "hosting": "cloud provider", "package_manager": "package managers", "formatter": "code formatter",
}  # fmt: skip
GROUPS = {name: group for group, names in TOOLS.items() for name in names.split()}
#: In these a project has one at a time; of the others it may well have two.
EXCLUSIVE = frozenset(
    """package_manager python_packages formatter python_formatter test_framework python_tests browser_tests orm bundler
    ci date_library state_library type_checker""".split()  # noqa: SIM905 - quoted, they are harder to read
)


def named_groups(question: str) -> dict[str, str]:
    """Return the names of the tools of each group that a question names, by each word by which it does."""
    words = re.findall(r"[a-z]+", question.lower())
    said = f" {' '.join(words)} "
    found = {}
    for group, tools in TOOLS.items():
        names = [group.replace("_", " "), *(name for name in CALLED.get(group, "").split(",") if name)]
        if spoken := next((name for name in names if f" {name} " in said), None):
            found.update(dict.fromkeys(spoken.split(), tools))
    return found


def tool_group(name: str) -> str | None:
    """Return what a tool is for; None if it is not known."""
    return GROUPS.get(name.lower().strip("`\"'"))


def same_exclusive(one: str, other: str) -> bool:
    """Whether two tools are of one group of which a project has one at a time."""
    group = tool_group(one)
    return group in EXCLUSIVE and group == tool_group(other)


def exclusive_groups(text: str) -> frozenset[str]:
    """Return what the tools that a text names are for, where a project has one of them at a time."""
    groups = (tool_group(word.strip(",.;:!?()")) for word in text.split())
    return frozenset(group for group in groups if group in EXCLUSIVE)
