-- Roles, database and extensions of Lectern. For psql, as a superuser; may be repeated. The embedded Postgres and the container of
-- compose.yaml run it; an administrator of another server can run it too, with both passwords in the environment.
\set ON_ERROR_STOP on
\getenv owner_password LECTERN_OWNER_PASSWORD
\getenv app_password LECTERN_APP_PASSWORD
SET client_min_messages = warning;

-- lectern_owner owns the database and runs migrations; CREATEDB is for the tests' databases.
SELECT 'CREATE ROLE lectern_owner' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'lectern_owner') \gexec
ALTER ROLE lectern_owner LOGIN CREATEDB NOSUPERUSER NOCREATEROLE NOBYPASSRLS PASSWORD :'owner_password';

-- lectern_app is what web and workers are: row-level security binds it, and it can change no table.
SELECT 'CREATE ROLE lectern_app' WHERE NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'lectern_app') \gexec
ALTER ROLE lectern_app LOGIN NOCREATEDB NOSUPERUSER NOCREATEROLE NOBYPASSRLS PASSWORD :'app_password';
-- A worker that is frozen, or whose machine is gone, in the middle of a transaction holds its rows: others skip them, also when leases
-- have run out. Our transactions do nothing slow between two statements.
ALTER ROLE lectern_app SET idle_in_transaction_session_timeout = '60s';
ALTER ROLE lectern_app SET tcp_keepalives_idle = 30;
ALTER ROLE lectern_app SET tcp_keepalives_interval = 10;
ALTER ROLE lectern_app SET tcp_keepalives_count = 3;

-- template1 first: databases made later (the tests') get extensions and privileges from it.
\connect template1
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS btree_gin;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS unaccent;
ALTER DEFAULT PRIVILEGES FOR ROLE lectern_owner GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO lectern_app;
ALTER DEFAULT PRIVILEGES FOR ROLE lectern_owner GRANT USAGE, SELECT ON SEQUENCES TO lectern_app;
ALTER DEFAULT PRIVILEGES FOR ROLE lectern_owner GRANT EXECUTE ON FUNCTIONS TO lectern_app;

SELECT 'CREATE DATABASE lectern OWNER lectern_owner' WHERE NOT EXISTS (SELECT FROM pg_database WHERE datname = 'lectern') \gexec
-- A database made by somebody else (POSTGRES_DB of a container) lacks what template1 now has.
\connect lectern
SET client_min_messages = warning;
CREATE EXTENSION IF NOT EXISTS vector;
CREATE EXTENSION IF NOT EXISTS btree_gin;
CREATE EXTENSION IF NOT EXISTS pg_trgm;
CREATE EXTENSION IF NOT EXISTS unaccent;
ALTER DATABASE lectern OWNER TO lectern_owner;
ALTER DEFAULT PRIVILEGES FOR ROLE lectern_owner GRANT SELECT, INSERT, UPDATE, DELETE ON TABLES TO lectern_app;
ALTER DEFAULT PRIVILEGES FOR ROLE lectern_owner GRANT USAGE, SELECT ON SEQUENCES TO lectern_app;
ALTER DEFAULT PRIVILEGES FOR ROLE lectern_owner GRANT EXECUTE ON FUNCTIONS TO lectern_app;
