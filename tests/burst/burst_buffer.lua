-- A burst_buffer.lua that does nothing but tell: every call is a line of bb/calls.log beside this file.
-- What it answers is in files there: NAME.rc, NAME.msg, NAME.sleep, NAME.busy (a count), NAME.loop, each also as NAME.JOB.rc …
local DIR = debug.getinfo(1, "S").source:sub(2):match("(.*/)") .. "bb/"

local function content(name)
	local file = io.open(DIR .. name, "r")
	if not file then return nil end
	local text = file:read("a")
	file:close()
	return (text:gsub("\n$", ""))
end

local function control(name, job, what)
	return (job and content(name .. "." .. job .. "." .. what)) or content(name .. "." .. what)
end

local function write(name, mode, text)
	local file = assert(io.open(DIR .. name, mode))
	file:write(text .. "\n")
	file:close()
end

-- The name without the prefix, the plain arguments without the script's path, and of job_info what tests look at.
local function answer(name, job, ...)
	local words = { (name:gsub("^slurm_bb_", "")) }
	for _, word in ipairs({ ... }) do
		if type(word) == "table" then
			words[#words + 1] = "info=" .. tostring(word.job_id) .. "/" .. word.burst_buffer_state .. "/" .. tostring(word.nodes)
			write("info." .. words[1], "w", slurm.to_json(word))
		elseif word:match("/script") then
			write("script." .. words[1], "w", assert(io.open(word)):read("a"))
		elseif not word:match("/path$") then
			words[#words + 1] = word
		end
	end
	write("calls.log", "a", table.concat(words, " "))
	if control(name, job, "loop") then while true do end end
	local sleep = control(name, job, "sleep")
	if sleep then os.execute("sleep " .. sleep) end
	local busy = tonumber(control(name, job, "busy") or "0")
	if busy > 0 then
		write(name .. ".busy", "w", tostring(busy - 1))
		return slurm.SUCCESS, slurm.SLURM_BB_BUSY
	end
	return tonumber(control(name, job, "rc") or "0"), control(name, job, "msg")
end

function slurm_bb_job_process(script, uid, gid, info)
	return answer("slurm_bb_job_process", nil, script, uid, gid, info)
end

function slurm_bb_pools()
	if control("slurm_bb_pools", nil, "loop") then while true do end end
	local pools = '{"pools":[{"id":"p1","quantity":1000,"granularity":1024},{"id":"p2","quantity":5,"granularity":2,"free":3}]}'
	return slurm.SUCCESS, content("pools.json") or pools
end

function slurm_bb_setup(job, uid, gid, pool, size, script, info)
	return answer("slurm_bb_setup", job, job, uid, gid, pool, size, script, info)
end

function slurm_bb_data_in(job, script, uid, gid, info)
	return answer("slurm_bb_data_in", job, job, script, uid, gid, info)
end

function slurm_bb_test_data_in(job, script, uid, gid, info)
	return answer("slurm_bb_test_data_in", job, job, script, uid, gid, info)
end

function slurm_bb_real_size(job, uid, gid, info)
	local code, size = answer("slurm_bb_real_size", job, job, uid, gid, info)
	return code, size or "4096"
end

function slurm_bb_paths(job, script, path_file, uid, gid, info)
	write("../bb/paths", "w", path_file)
	local file = assert(io.open(path_file, "w"))
	file:write("BB_PATH=/bb/" .. job .. "\nBB_NODES=" .. tostring(info.nodes) .. "\n\nBB_NOT=1\n")
	file:close()
	return answer("slurm_bb_paths", job, job, script, path_file, uid, gid, info)
end

function slurm_bb_pre_run(job, script, uid, gid, info)
	return answer("slurm_bb_pre_run", job, job, script, uid, gid, info)
end

function slurm_bb_post_run(job, script, uid, gid, info)
	return answer("slurm_bb_post_run", job, job, script, uid, gid, info)
end

function slurm_bb_data_out(job, script, uid, gid, info)
	return answer("slurm_bb_data_out", job, job, script, uid, gid, info)
end

function slurm_bb_test_data_out(job, script, uid, gid, info)
	return answer("slurm_bb_test_data_out", job, job, script, uid, gid, info)
end

function slurm_bb_job_teardown(job, script, hurry, uid, gid)
	return answer("slurm_bb_job_teardown", job, job, script, hurry, uid, gid)
end

function slurm_bb_get_status(uid, gid, ...)
	local code, text = answer("slurm_bb_get_status", nil, uid, gid, ...)
	return code, text or table.concat({ "status", ... }, "|")
end

slurm.log_info("%s was loaded", "burst_buffer.lua")
return slurm.SUCCESS
